//! The captures of a case, and the graphs that result from them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::cells::Captures;
use crate::memory::{Lane, try_enter};
use crate::run::Stage;
use crate::simulator::{Answer, Driver};

/// A thread that begins and ends captures: on the stream, and in the mode, that it is sent.
pub(crate) struct Captor {
    orders: Sender<(Lane, Option<i32>)>,
    done: Receiver<Answer<usize>>,
}

fn capture(driver: Driver, lane: Lane, mode: Option<i32>) -> Answer<usize> {
    match mode {
        Some(mode) => driver.begin_capture(lane.handle, mode).map(|()| 0),
        None => driver.end_capture(lane.handle),
    }
}

impl Captor {
    pub(crate) fn new(driver: Driver) -> Self {
        let (orders, due) = channel::<(Lane, Option<i32>)>();
        let (answers, done) = channel();
        // The thread ends with the channel of its orders.
        thread::spawn(move || {
            for (lane, mode) in due {
                let entered = try_enter(driver, lane.place);
                let answer = entered.and_then(|()| capture(driver, lane, mode));
                answers.send(answer).expect("the test waits for it");
            }
        });
        Self { orders, done }
    }
}

impl Stage<'_> {
    fn capture(&self, lane: Lane, mode: Option<i32>) -> Answer<usize> {
        let Some(captor) = &self.captor else {
            let world = self.world();
            return world.within(lane.place, |driver| capture(driver, lane, mode));
        };
        captor
            .orders
            .send((lane, mode))
            .expect("it waits for orders");
        captor.done.recv().expect("it answers each")
    }

    pub(crate) fn begin_captures(&self) -> Result<(), String> {
        let (world, mode) = (self.world(), self.cell().mode);
        for capture in self.rules.captures {
            let origin = capture[0];
            self.capture(origin, Some(mode))
                .map_err(|code| format!("the capture does not begin: {code}"))?;
            for &joining in &capture[1..] {
                world.order(origin, joining);
            }
            if self.rules.is_broken() {
                let broken =
                    world.within(origin.place, |driver| driver.query_stream(origin.handle));
                assert_eq!(broken, Err(900));
            }
        }
        Ok(())
    }

    /// Ends the captures. All must be valid, unless the case has broken them.
    pub(crate) fn end_captures(&self) -> Result<Vec<usize>, String> {
        let world = self.world();
        let mut graphs = Vec::new();
        for capture in self.rules.captures {
            let origin = capture[0];
            for &joining in &capture[1..] {
                world.order(joining, origin);
            }
            match self.capture(origin, None) {
                Err(901) if self.rules.is_broken() => {}
                other => {
                    graphs.push(other.map_err(|code| format!("the end of a capture gives {code}"))?)
                }
            }
        }
        Ok(graphs)
    }

    /// Launches the graphs, with writes of the producer in between. Returns an executable that can be launched again.
    pub(crate) fn launch(&self, graphs: &[usize]) -> Result<usize, String> {
        let (world, lanes) = (self.world(), self.rules.lanes);
        let reader: Lane = lanes.reader.ok_or("the host cannot capture")?;
        let driver = world.driver;
        let executable = driver
            .instantiate(graphs[0])
            .map_err(|code| code.to_string())?;
        for launch in 0..3 {
            // The write before the first launch is the one that was pending at the export.
            if let (1.., Some(producer)) = (launch, lanes.producer) {
                world.order(reader, producer);
                if self.cell().captures == Captures::Consumer {
                    world.write(producer, self.address);
                }
                world.order(producer, reader);
            }
            world
                .within(reader.place, |driver| {
                    driver.launch(executable, reader.handle)
                })
                .map_err(|code| format!("a launch gives {code}"))?;
        }
        Ok(executable)
    }

    pub(crate) fn destroy(&self, graphs: &[usize]) {
        for &graph in graphs {
            assert_eq!(self.world().driver.destroy_graph(graph), Ok(()));
        }
    }
}
