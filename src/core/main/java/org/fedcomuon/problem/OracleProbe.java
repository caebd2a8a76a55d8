package org.fedcomuon.problem;

import java.util.Arrays;
import java.util.List;
import java.util.OptionalDouble;
import java.util.stream.IntStream;

/** Calls the functions of a client with memory that shows what they write, and what they must not. */
final class OracleProbe {
    /** Elements before and after each view; a cache line, so that the view is as aligned as in a run. */
    private static final int MARGIN = 16;

    private static final float MARK = 1.2345e30f;

    private final int number;
    private final Client client;
    private final Layout layout;
    private final Guarded at;
    private final Guarded atOld;
    private final Results results;
    private final Results resultsOld;
    private final Guarded y;
    private final Guarded gradient;

    /** A view in the middle of marked memory. */
    private record Guarded(String what, Floats all, Floats view) {
        static Guarded of(String what, long length) {
            Floats all = Floats.zeros(length + 2 * MARGIN);
            all.fill(MARK);
            return new Guarded(what, all, all.slice(MARGIN, length));
        }

        boolean isIntact() {
            for (int i = 0; i < MARGIN; i++) {
                if (all.get(i) != MARK || all.get(all.length() - 1 - i) != MARK) {
                    return false;
                }
            }
            return true;
        }
    }

    /** What g is. */
    static final class Inner {
        private final float[] value;
        private final float[][] jacobian;

        Inner(float[] value, float[][] jacobian) {
            this.value = value;
            this.jacobian = jacobian;
        }

        /** Returns the value of each component. */
        float[] value() {
            return value;
        }

        /** Returns a gradient for each component. */
        float[][] jacobian() {
            return jacobian;
        }
    }

    /** Where a client writes g to. */
    private record Results(Layout layout, Guarded value, List<Guarded> components) {
        static Results of(Layout layout, int d) {
            return new Results(
                    layout,
                    Guarded.of("the values of g", d),
                    IntStream.range(0, d)
                            .mapToObj(i -> Guarded.of("component %d of the Jacobian".formatted(i), layout.length()))
                            .toList());
        }

        void fill(float before) {
            value.view().fill(before);
            components.forEach(component -> component.view().fill(before));
        }

        Jacobian jacobian() {
            return new Jacobian(components.stream()
                    .map(component -> new Point(layout, component.view()))
                    .toList());
        }

        Inner copied() {
            return new Inner(
                    value.view().toArray(),
                    components.stream()
                            .map(component -> component.view().toArray())
                            .toArray(float[][]::new));
        }
    }

    OracleProbe(int number, Client client, Layout layout, int d) {
        this.number = number;
        this.client = client;
        this.layout = layout;
        at = Guarded.of("W", layout.length());
        atOld = Guarded.of("the old W", layout.length());
        results = Results.of(layout, d);
        resultsOld = Results.of(layout, d);
        y = Guarded.of("y", d);
        gradient = Guarded.of("the gradient of f", d);
    }

    /**
     * Evaluates g.
     *
     * @param before what the memory of the results has in it
     */
    Inner inner(Sample xi, float[] w, float before) throws GradientCheck.Mistake {
        results.fill(before);
        call(xi, w);
        return results.copied();
    }

    /** Evaluates g, for its values only. */
    float[] values(Sample xi, float[] w) throws GradientCheck.Mistake {
        call(xi, w);
        return results.value().view().toArray();
    }

    private void call(Sample xi, float[] w) throws GradientCheck.Mistake {
        at.view().set(w);
        try {
            client.inner(xi, new Point(layout, at.view()), results.value().view(), results.jacobian());
        } catch (Exception e) {
            throw thrown("inner", xi, e);
        }
        requireUntouched("inner", at, w);
        requireIntact("inner", results);
    }

    /** Evaluates g at two points. */
    List<Inner> innerAtTwo(Sample xi, float[] w, float[] wOld, float before) throws GradientCheck.Mistake {
        at.view().set(w);
        atOld.view().set(wOld);
        results.fill(before);
        resultsOld.fill(before);
        try {
            client.innerAtTwo(
                    xi,
                    new Point(layout, at.view()),
                    results.value().view(),
                    results.jacobian(),
                    new Point(layout, atOld.view()),
                    resultsOld.value().view(),
                    resultsOld.jacobian());
        } catch (Exception e) {
            throw thrown("innerAtTwo", xi, e);
        }
        requireUntouched("innerAtTwo", at, w);
        requireUntouched("innerAtTwo", atOld, wOld);
        requireIntact("innerAtTwo", results);
        requireIntact("innerAtTwo", resultsOld);
        return List.of(results.copied(), resultsOld.copied());
    }

    /** Evaluates the gradient of f. */
    float[] outerGradient(Sample zeta, float[] point, float before) throws GradientCheck.Mistake {
        y.view().set(point);
        gradient.view().fill(before);
        try {
            client.outerGradient(zeta, y.view(), gradient.view());
        } catch (Exception e) {
            throw thrown("outerGradient", zeta, e);
        }
        requireUntouched("outerGradient", y, point);
        requireIntact("outerGradient", gradient);
        return gradient.view().toArray();
    }

    /** Evaluates f. */
    OptionalDouble outerValue(Sample zeta, float... point) throws GradientCheck.Mistake {
        y.view().set(point);
        OptionalDouble result;
        try {
            result = client.outerValue(zeta, y.view());
        } catch (Exception e) {
            throw thrown("outerValue", zeta, e);
        }
        requireUntouched("outerValue", y, point);
        return result;
    }

    private GradientCheck.Mistake thrown(String function, Sample sample, Exception e) {
        return new GradientCheck.Mistake(
                "client %d: %s throws %s (draw %d of the seed %d)"
                        .formatted(number, function, e, sample.draw(), sample.seed()),
                e);
    }

    private void requireUntouched(String function, Guarded input, float[] content) throws GradientCheck.Mistake {
        int different = Arrays.mismatch(input.view().toArray(), content);
        if (different >= 0) {
            throw new GradientCheck.Mistake("client %d: %s changes %s, at index %d; it is only to be read"
                    .formatted(number, function, input.what(), different));
        }
        requireIntact(function, input);
    }

    private void requireIntact(String function, Results all) throws GradientCheck.Mistake {
        requireIntact(function, all.value());
        for (Guarded component : all.components()) {
            requireIntact(function, component);
        }
    }

    private void requireIntact(String function, Guarded each) throws GradientCheck.Mistake {
        if (!each.isIntact()) {
            throw new GradientCheck.Mistake(
                    "client %d: %s writes beyond the memory of %s".formatted(number, function, each.what()));
        }
    }
}
