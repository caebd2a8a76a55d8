package org.fedcomuon.method;

import java.util.List;
import java.util.Map;

/** An algorithm with its hyper-parameters. Immutable, and free to share between runs and threads. */
public interface Method {
    /** What commands, files and reports call it. */
    String name();

    /**
     * Every hyper-parameter by name, in a fixed order; its {@code toString} is how files write it, and a checkpoint
     * must agree with it.
     */
    Map<String, Object> parameters();

    /**
     * Refuses values that are out of range for a run of this length.
     *
     * @throws IllegalArgumentException naming the parameter, its value and its range
     */
    void validate(long iterations, int tau);

    /** What is allowed, but outside of what the theory covers; one sentence each. */
    default List<String> warnings(long iterations, int tau) {
        return List.of();
    }

    /** Takes the method's state on the device of these clients. */
    Replica on(Clients clients);
}
