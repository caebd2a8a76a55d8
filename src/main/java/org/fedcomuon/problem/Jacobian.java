package org.fedcomuon.problem;

import java.util.List;

/**
 * {@code [G_1 | ... | G_d]}: the gradients of the d components of g, one after the other. It holds whatever was there
 * before; an oracle writes all of it.
 *
 * <p>Of one thread at a time, as {@link Floats} are.
 *
 * @param components one gradient a component
 */
public record Jacobian(List<Point> components) {
    public Jacobian {
        components = List.copyOf(components);
    }

    /** The gradient of component {@code i}. */
    public Point component(int i) {
        return components.get(i);
    }
}
