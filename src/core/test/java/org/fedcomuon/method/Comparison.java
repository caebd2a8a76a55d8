package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;

/** How far a method's floats are from the reference's doubles, state variable by state variable. */
final class Comparison {
    /** Relative; a few hundred roundings. */
    static final double TOLERANCE = 1e-4;

    /**
     * A vector shorter than this part of the longest client's is compared as if it were that long: it may be passing
     * zero.
     */
    private static final double FLOOR = 0.1;

    private Comparison() {}

    /** The largest relative distance over the clients. */
    static double distance(double[][] values, double[][] reference) {
        assertThat(values).hasDimensions(reference.length, reference[0].length);
        double floor = 1e-3;
        for (double[] row : reference) {
            floor = Math.max(floor, FLOOR * ReferenceMatrix.norm(row));
        }
        double worst = 0;
        for (int k = 0; k < reference.length; k++) {
            double distance = ReferenceMatrix.distance(values[k], reference[k]);
            worst = Math.max(worst, distance / Math.max(floor, ReferenceMatrix.norm(reference[k])));
        }
        return worst; // NaN if any is: Math.max keeps it
    }

    static void requireSame(Rig rig, ReferenceMethod<?> reference, String when) {
        Map<String, double[][]> expected = reference.state();
        assertThat(rig.clients.state().stream().map(Variable::name))
                .containsExactlyInAnyOrderElementsOf(expected.keySet());
        for (Variable variable : rig.clients.state()) {
            assertThat(distance(rig.doubles(variable), expected.get(variable.name())))
                    .as("%s %s", variable.name(), when)
                    .isLessThan(TOLERANCE);
        }
        assertThat(rig.clients.innerDraws()).as("samples of g " + when).containsExactly(reference.innerDraws);
        assertThat(rig.clients.outerDraws()).as("samples of f " + when).containsExactly(reference.outerDraws);
    }

    /** The largest distance of any state variable. */
    static double distance(Rig rig, ReferenceMethod<?> reference) {
        double worst = 0;
        for (Variable variable : rig.clients.state()) {
            worst = Math.max(
                    worst, distance(rig.doubles(variable), reference.state().get(variable.name())));
        }
        return worst;
    }
}
