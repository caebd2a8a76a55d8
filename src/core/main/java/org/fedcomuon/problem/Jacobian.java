package org.fedcomuon.problem;

import java.util.List;

/**
 * {@code [G_1 | ... | G_d]}: the gradients of the d components of g, one after the other. Its previous contents are
 * undefined; an oracle writes all of it.
 *
 * <p>Not thread-safe, as {@link Floats} are not.
 *
 * @param components one gradient per component
 */
public record Jacobian(List<Point> components) {
    public Jacobian {
        components = List.copyOf(components);
    }

    /** Returns the gradient of component {@code i}. */
    public Point component(int i) {
        return components.get(i);
    }
}
