//! User objects: what a graph keeps alive, and the function that ends them.
//!
//! Modelled: references that the program holds and references that graphs hold; at the last one the destructor is
//! called.
//! Our reading: it is called before the releasing call returns, on the calling thread; the driver may do it later.

use crate::codes::{Answer, Code};
use crate::world::World;

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
        destructor: Destructor,
        references: usize,
    ) -> Answer<usize> {
        if references == 0 {
            return Err(Code::INVALID_VALUE);
        }
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

    pub(crate) fn release_object(&mut self, handle: usize, count: usize) -> Answer<Due> {
        let object = self.user_objects.get_mut(&handle);
        let object = object.ok_or(Code::INVALID_VALUE)?;
        object.references = object
            .references
            .checked_sub(count)
            .ok_or(Code::INVALID_VALUE)?;
        if object.references > 0 {
            return Ok(Due::new());
        }
        let ended = self.user_objects.remove(&handle);
        Ok(ended
            .into_iter()
            .map(|object| (object.destructor, object.data))
            .collect())
    }

    /// A graph takes references: new ones, or those of the program.
    pub(crate) fn graph_takes(
        &mut self,
        graph: usize,
        object: usize,
        count: usize,
        moved: bool,
    ) -> Answer {
        if !self.graphs.contains_key(&graph) {
            return Err(Code::INVALID_VALUE);
        }
        if !moved {
            self.retain_object(object, count)?;
        } else if !self.user_objects.contains_key(&object) {
            return Err(Code::INVALID_VALUE);
        }
        if let Some(graph) = self.graphs.get_mut(&graph) {
            graph.objects.extend(core::iter::repeat_n(object, count));
        }
        Ok(())
    }

    /// Ends a graph, or one that can be launched.
    pub(crate) fn destroy_graph(&mut self, handle: usize, executable: bool) -> Answer<Due> {
        let objects = if executable {
            self.executables
                .remove(&handle)
                .map(|found| found.graph.objects)
        } else {
            self.graphs.remove(&handle).map(|found| found.objects)
        };
        let mut due = Due::new();
        for object in objects.ok_or(Code::INVALID_VALUE)? {
            due.extend(self.release_object(object, 1)?);
        }
        Ok(due)
    }
}
