//! What has to be over before what: a graph without circles, in which each node comes after those that lead to it.

use std::collections::BTreeSet;

/// A moment of some thread's or stream's work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Node(usize);

#[derive(Default)]
pub(super) struct Graph {
    before: Vec<Vec<Node>>,
    /// Nodes that are no work: they are over when all before them is.
    idle: BTreeSet<Node>,
}

impl Graph {
    /// A new node, behind these.
    pub(super) fn add(&mut self, before: impl IntoIterator<Item = Node>) -> Node {
        self.before.push(before.into_iter().collect());
        Node(self.before.len() - 1)
    }

    /// The same, which is no work.
    pub(super) fn join(&mut self, before: impl IntoIterator<Item = Node>) -> Node {
        let node = self.add(before);
        self.idle.insert(node);
        node
    }

    /// Whether `start` is complete once `end` is reached.
    pub(super) fn is_over(&self, start: Node, end: Node) -> bool {
        let mut before = self.before[start.0].iter();
        let idle = self.idle.contains(&start);
        self.leads(start, end) || (idle && before.all(|&one| self.is_over(one, end)))
    }

    /// From which of these a path leads to `end`.
    pub(super) fn leading(&self, starts: &[Node], end: Node) -> Vec<bool> {
        let Some(oldest) = starts.iter().min() else {
            return Vec::new();
        };
        // Paths lead to later nodes only.
        let mut seen = vec![false; (end.0 + 1).saturating_sub(oldest.0)];
        let mut ways = vec![end];
        while let Some(node) = ways.pop() {
            if node >= *oldest && !core::mem::replace(&mut seen[node.0 - oldest.0], true) {
                ways.extend(&self.before[node.0]);
            }
        }
        let found = |start: &Node| seen.get(start.0 - oldest.0).copied().unwrap_or(false);
        starts.iter().map(found).collect()
    }

    pub(super) fn leads(&self, start: Node, end: Node) -> bool {
        self.leading(&[start], end) == [true]
    }
}
