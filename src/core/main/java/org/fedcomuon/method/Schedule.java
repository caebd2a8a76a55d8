package org.fedcomuon.method;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A hyper-parameter that may change during a run. Immutable and thread-safe. Configurations contain its
 * {@code toString}.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="method"}
 */
public sealed interface Schedule {
    /** A name and two numbers. */
    Pattern FORM = Pattern.compile("(power|cosine)\\s*\\(\\s*([^,\\s]+)\\s*,\\s*([^,)\\s]+)\\s*\\)");

    /** Returns the value in a step. */
    double at(Method.Step step);

    /** Returns the smallest value it takes in a run of {@code iterations} steps. */
    double least(long iterations);

    /** Returns the largest value it takes in a run of {@code iterations} steps. */
    double greatest(long iterations);

    /**
     * Reads what {@code toString} writes: a number, {@code power(factor, exponent)} or {@code cosine(first, last)}.
     *
     * @throws IllegalArgumentException when it is none of these
     */
    static Schedule parse(String text) {
        Matcher matcher = FORM.matcher(text.strip());
        try {
            if (matcher.matches()) {
                double first = Double.parseDouble(matcher.group(2));
                double second = Double.parseDouble(matcher.group(3));
                return matcher.group(1).equals("power") ? power(first, second) : cosine(first, second);
            }
            return constant(Double.parseDouble(text.strip()));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(
                    "'%s' is none of: a number, power(FACTOR, EXPONENT), cosine(FIRST, LAST)".formatted(text), e);
        }
    }

    /** Returns whether the values are the same in runs of any length. */
    default boolean isConstant() {
        return this instanceof Constant;
    }

    /** Returns a schedule that is always {@code value}. */
    static Schedule constant(double value) {
        return new Constant(value);
    }

    /**
     * Returns a schedule that is {@code factor T^exponent} all through a run of T steps, as the theory sets its
     * parameters.
     */
    static Schedule power(double factor, double exponent) {
        return new Power(factor, exponent);
    }

    /** Returns a schedule that goes from {@code first} to {@code last} along half a cosine. */
    static Schedule cosine(double first, double last) {
        return new Cosine(first, last);
    }

    /** See {@link Schedule#constant}. */
    record Constant(double value) implements Schedule {
        @Override
        public double at(Method.Step step) {
            return value;
        }

        @Override
        public double least(long iterations) {
            return value;
        }

        @Override
        public double greatest(long iterations) {
            return value;
        }

        @Override
        public String toString() {
            return Double.toString(value);
        }
    }

    /** See {@link Schedule#power}. */
    record Power(double factor, double exponent) implements Schedule {
        @Override
        public double at(Method.Step step) {
            return least(step.iterations());
        }

        @Override
        public double least(long iterations) {
            return factor * Math.pow((double) Math.max(1, iterations), exponent);
        }

        @Override
        public double greatest(long iterations) {
            return least(iterations);
        }

        @Override
        public String toString() {
            return "power(%s, %s)".formatted(factor, exponent);
        }
    }

    /** See {@link Schedule#cosine}. */
    record Cosine(double first, double last) implements Schedule {
        @Override
        public double at(Method.Step step) {
            double done = step.iterations() <= 1 ? 0 : (double) step.t() / (step.iterations() - 1);
            return last + (first - last) * 0.5 * (1 + Math.cos(Math.PI * Math.min(1, done)));
        }

        @Override
        public double least(long iterations) {
            return Math.min(first, last);
        }

        @Override
        public double greatest(long iterations) {
            return Math.max(first, last);
        }

        @Override
        public String toString() {
            return "cosine(%s, %s)".formatted(first, last);
        }
    }
}
