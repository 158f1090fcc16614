//! User objects: what a graph keeps alive, and the function that ends them.
//!
//! Modelled: references that the program holds and references that graphs hold; at the last one the destructor is
//! called.
//! The destructor is called on a thread of the driver's, and must call no driver: that is a fault. "When a graph is destroyed
//! without being synchronized, the references are retained until the execution is completed": who sees that the
//! destructor was called knows that all launches are over.
//! Our reading: it is called before the releasing call returns; with the switch `slow` in a later call of a thread that knows
//! that the launches are over. HIP promises nothing of that, and calls it at once. A capture that breaks lets go of its graph's references.

use crate::clock::Clock;
use crate::codes::{Answer, Code};
use crate::world::{Api, HostId, World};

pub(crate) type Destructor = extern "C" fn(usize);

pub(crate) struct UserObject {
    pub(crate) data: usize,
    pub(crate) destructor: Destructor,
    pub(crate) references: usize,
}

/// A destructor to call once the simulator is not locked.
pub(crate) type Due = Vec<(Destructor, usize)>;

impl World {
    pub(crate) fn create_object(
        &mut self,
        data: usize,
        destructor: Option<Destructor>,
        references: u32,
    ) -> Answer<usize> {
        if self.is_switched("no-user-objects") {
            return Err(Code::NOT_SUPPORTED);
        }
        let (Some(destructor), 1..) = (destructor, references) else {
            return Err(Code::INVALID_VALUE);
        };
        let references = references as usize;
        let handle = self.new_handle();
        let object = UserObject {
            data,
            destructor,
            references,
        };
        self.user_objects.insert(handle, object);
        Ok(handle)
    }

    pub(crate) fn retain_object(&mut self, object: usize, count: usize) -> Answer {
        let object = self.user_objects.get_mut(&object);
        object.ok_or(Code::INVALID_VALUE)?.references += count;
        Ok(())
    }

    pub(crate) fn release_object(&mut self, handle: usize, count: usize) -> Answer {
        let object = self.user_objects.get_mut(&handle);
        let object = object.ok_or(Code::INVALID_VALUE)?;
        object.references = object
            .references
            .checked_sub(count)
            .ok_or(Code::INVALID_VALUE)?;
        if object.references == 0 {
            let ended = self.user_objects.remove(&handle).into_iter();
            self.due
                .extend(ended.map(|object| (object.destructor, object.data)));
        }
        Ok(())
    }

    /// Lets go of what a graph held, when what is known to `over` is over.
    pub(crate) fn let_go(&mut self, host: HostId, over: Clock, objects: Vec<usize>) -> Answer {
        let line = self.host(host).line;
        if self.is_switched("slow") && !self.clock(line).covers(&over) {
            self.ending.push((over, objects));
            return Ok(());
        }
        if self.is_switched("keep-objects") {
            return Ok(());
        }
        if !objects.is_empty() {
            self.clock(line).join(&over);
        }
        objects
            .into_iter()
            .try_for_each(|object| self.release_object(object, 1))
    }

    /// Lets go of what was held for launches that this thread knows to be over now.
    pub(crate) fn let_go_of_ended(&mut self, host: HostId) {
        for (over, objects) in core::mem::take(&mut self.ending) {
            // It is there, or was reported.
            let _ = self.let_go(host, over, objects);
        }
    }

    /// A graph takes references: new ones, or those of the program.
    pub(crate) fn graph_takes(
        &mut self,
        graph: usize,
        object: usize,
        count: usize,
        moved: bool,
    ) -> Answer {
        if self.objects_of(graph).is_none() {
            self.fault(format!("a user object for an unknown graph: {graph:#x}"));
            return Err(Code::INVALID_VALUE);
        }
        if !moved {
            self.retain_object(object, count)?;
        } else if !self.user_objects.contains_key(&object) {
            return Err(Code::INVALID_VALUE);
        }
        if let Some(objects) = self.objects_of(graph) {
            objects.extend(core::iter::repeat_n(object, count));
        }
        Ok(())
    }

    /// What a graph holds, or one that is being captured.
    fn objects_of(&mut self, graph: usize) -> Option<&mut Vec<usize>> {
        let mut captures = self.captures.values_mut();
        let capturing = captures.find(|capture| capture.graph == graph && !capture.is_over());
        match capturing {
            Some(capture) => Some(&mut capture.objects),
            None => Some(&mut self.graphs.get_mut(&graph)?.objects),
        }
    }

    /// Ends a graph, or one that can be launched.
    pub(crate) fn destroy_graph(
        &mut self,
        api: Api,
        host: HostId,
        handle: usize,
        executable: bool,
    ) -> Answer {
        let (graph, last) = if executable {
            let found = self.executables.remove(&handle);
            let found = found.ok_or(Code::INVALID_VALUE)?;
            let last = match api {
                Api::Cuda => found.last,
                Api::Hip => Clock::default(),
            };
            (found.graph, last)
        } else {
            let found = self.graphs.remove(&handle);
            (found.ok_or(Code::INVALID_VALUE)?, Clock::default())
        };
        self.let_go(host, last, graph.objects)
    }
}
