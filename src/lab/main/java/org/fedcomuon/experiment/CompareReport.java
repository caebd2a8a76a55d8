package org.fedcomuon.experiment;

import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * A comparison of ways to orthogonalize a matrix: exactly, or by Newton-Schulz iterations.
 *
 * <p>Immutable.
 *
 * @param title the title of the comparison
 * @param device the device that was measured
 * @param library the library for products and decompositions
 * @param ofRun whether the matrices are from a run, and not made for the comparison
 * @param wanted errors whose times are compared
 * @param entries one per matrix and method
 * @param curves the effect of each set of coefficients on a singular value
 */
public record CompareReport(
        String title,
        String device,
        String library,
        boolean ofRun,
        List<Double> wanted,
        List<Entry> entries,
        List<Curve> curves) {
    /** The method that all others are judged against. */
    public static final String EXACT = "exact";

    public CompareReport {
        wanted = List.copyOf(wanted);
        entries = List.copyOf(entries);
        curves = List.copyOf(curves);
    }

    /**
     * A matrix M that was orthogonalized.
     *
     * @param name of a block of a model; empty if it was made for the comparison
     * @param condition largest over smallest singular value: as intended where it was made, else as it is
     * @param directions how many directions of the shorter side can be told from rounding
     * @param singularValues in double precision, largest first
     */
    public record Subject(
            String name, int rows, int cols, double condition, int directions, List<Double> singularValues) {
        public Subject {
            singularValues = List.copyOf(singularValues);
            if (rows < 1 || cols < 1) {
                throw new IllegalArgumentException("a matrix of " + rows + " x " + cols);
            }
            if (!(condition >= 1)) {
                throw new IllegalArgumentException("a condition number of " + condition);
            }
        }
    }

    /**
     * The result O of one method on one matrix. Measures of O may be NaN or infinite, because an iteration can diverge.
     *
     * <p>Immutable.
     *
     * @param method exact, exact-svd, newton-schulz or gram
     * @param coefficients which polynomials the iteration applies, empty for exact ones
     * @param steps of the iteration; 0 for exact ones
     * @param path which code ran
     * @param seconds per call
     * @param errors the distance from the polar factor of M in each direction that can be told from rounding, that of
     *     the largest singular value first
     * @param orthogonalityError Frobenius norm of O O^T - I, over the root of the shorter side
     * @param alignment inner product of M and O, over the nuclear norm of M
     * @param smallestSingularValue of O
     * @param largestSingularValue of O
     * @param kept how many directions were kept; empty for an iteration, which drops none
     */
    public record Entry(
            Subject subject,
            String method,
            String coefficients,
            int steps,
            String path,
            double seconds,
            List<Double> errors,
            double orthogonalityError,
            double alignment,
            double smallestSingularValue,
            double largestSingularValue,
            OptionalInt kept) {
        public Entry {
            errors = List.copyOf(errors);
            if (!(seconds >= 0 && seconds < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("a time of " + seconds + " s");
            }
        }

        /** Returns the same result under the name of these coefficients. */
        Entry with(String name, int count) {
            return new Entry(
                    subject,
                    method,
                    name,
                    count,
                    path,
                    seconds,
                    errors,
                    orthogonalityError,
                    alignment,
                    smallestSingularValue,
                    largestSingularValue,
                    kept);
        }

        /** Returns the method, with the set of its coefficients if it has any. */
        public String label() {
            return isExact() ? method : method + " " + set();
        }

        /** Returns the coefficients without the lower bound that suits a matrix: what is one series for all. */
        public String set() {
            return withoutBound(coefficients);
        }

        /** Returns whether it decomposes the matrix. */
        public boolean isExact() {
            return coefficients.isEmpty();
        }

        /** Returns the largest error of a direction; NaN if one is; 0 if there is no direction. */
        public double error() {
            return errors.stream().reduce(0.0, Math::max);
        }
    }

    private static String withoutBound(String coefficients) {
        int bound = coefficients.indexOf('@');
        return bound < 0 ? coefficients : coefficients.substring(0, bound);
    }

    /** Returns the fastest iteration on a matrix whose error is at most this. */
    public Optional<Entry> fastest(Subject subject, double error) {
        return of(subject).stream()
                .filter(entry -> !entry.isExact() && entry.error() <= error)
                .min(Comparator.comparingDouble(Entry::seconds));
    }

    /** Returns the exact factor of a matrix. */
    public Optional<Entry> exact(Subject subject) {
        return of(subject).stream().filter(entry -> entry.method.equals(EXACT)).findFirst();
    }

    /** Returns the five usual steps on a matrix, in the form that is faster. */
    public Optional<Entry> fiveSteps(Subject subject) {
        return of(subject).stream()
                .filter(entry -> entry.coefficients.equals("jordan"))
                .min(Comparator.comparingDouble(Entry::seconds));
    }

    /** Returns the results on one matrix. */
    public List<Entry> of(Subject subject) {
        return entries.stream().filter(entry -> entry.subject.equals(subject)).toList();
    }

    /** Returns the matrices in the order of the entries. */
    public List<Subject> subjects() {
        return entries.stream().map(Entry::subject).distinct().toList();
    }

    /**
     * What a set of coefficients makes of all singular values from a lowest one to 1, in exact arithmetic.
     *
     * @param coefficients which polynomials it applies
     * @param lowest singular values, ascending
     * @param errors the largest distance from 1 of what any singular value from the lowest to 1 becomes
     */
    public record Curve(String coefficients, List<Double> lowest, List<Double> errors) {
        public Curve {
            lowest = List.copyOf(lowest);
            errors = List.copyOf(errors);
            if (lowest.size() != errors.size()) {
                throw new IllegalArgumentException(lowest.size() + " singular values, " + errors.size() + " errors");
            }
        }

        /** Returns the coefficients without their lower bound. */
        public String set() {
            return withoutBound(coefficients);
        }
    }
}
