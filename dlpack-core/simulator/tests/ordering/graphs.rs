//! The captures of a case, and the graphs that come of them.

use crate::cells::Captures;
use crate::memory::Lane;
use crate::run::Stage;

impl Stage<'_> {
    pub(crate) fn begin_captures(&self) -> Result<(), String> {
        let (world, mode) = (self.world(), self.cell().mode);
        for capture in self.rules.captures {
            let origin = capture[0];
            world
                .within(origin.place, |driver| {
                    driver.begin_capture(origin.handle, mode)
                })
                .map_err(|code| format!("the capture does not begin: {code}"))?;
            for &joining in &capture[1..] {
                world.order(origin, joining);
            }
        }
        Ok(())
    }

    /// Ends the captures, all of them whole.
    pub(crate) fn end_captures(&self) -> Result<Vec<usize>, String> {
        let world = self.world();
        let mut graphs = Vec::new();
        for capture in self.rules.captures {
            let origin = capture[0];
            for &joining in &capture[1..] {
                world.order(joining, origin);
            }
            let ended = world.within(origin.place, |driver| driver.end_capture(origin.handle));
            graphs.push(ended.map_err(|code| format!("the end of a capture gives {code}"))?);
        }
        Ok(graphs)
    }

    /// Launches what was captured, with writes of the producer in between. What can be launched again is left.
    pub(crate) fn launch(&self, graphs: &[usize]) -> Result<usize, String> {
        let (world, lanes) = (self.world(), self.rules.lanes);
        let reader: Lane = lanes.reader.ok_or("nobody captures on the host")?;
        let driver = world.driver;
        let executable = driver
            .instantiate(graphs[0])
            .map_err(|code| code.to_string())?;
        for launch in 0..10 {
            // The first one has what was pending at the export.
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
