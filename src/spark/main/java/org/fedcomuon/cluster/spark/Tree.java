package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The tree in which integers are added up: the driver at its root, and the members as nodes, each of which adds up what
 * those below it contribute. So the work of the driver does not grow with the number of members.
 *
 * @param members the number of members
 * @param fan how many members are directly below the driver, and below each member
 */
record Tree(int members, int fan) implements Serializable {
    /** Returns the members directly below a node. */
    List<Integer> below(int node) {
        int first = fan * (node + 1);
        return IntStream.range(first, Math.min(first + fan, members)).boxed().toList();
    }

    /** Returns the node directly above a member. */
    int above(int member) {
        return member / fan - 1; // that of the first ones is the driver, which is -1
    }
}
