package org.fedcomuon.sweep;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;

/**
 * Which settings are tried, and for how long. Each method of a sweep has trials of its own.
 *
 * <p>Immutable.
 */
public sealed interface Strategy {
    /** The names, as the command line has them. */
    List<String> NAMES = List.of("grid", "random", "halving");

    /**
     * A number of settings that are tried for a number of steps; the best of them, by the mean over seeds, go on to the
     * next rung.
     */
    record Rung(int settings, long iterations) {}

    /** Returns all combinations of values. */
    static Strategy grid() {
        return new Grid();
    }

    /** Returns some combinations, drawn from the first seed. */
    static Strategy random(int trials) {
        return new Random(trials);
    }

    /** Returns successive halving of all combinations. */
    static Strategy halving() {
        return new Halving(OptionalInt.empty());
    }

    /** Returns successive halving of some combinations, drawn from the first seed. */
    static Strategy halving(int trials) {
        return new Halving(OptionalInt.of(trials));
    }

    /** All combinations. */
    record Grid() implements Strategy {
        @Override
        public String name() {
            return "grid";
        }

        @Override
        public OptionalInt trials() {
            return OptionalInt.empty();
        }
    }

    /**
     * Some combinations by chance.
     *
     * @param count how many settings of each method
     */
    record Random(int count) implements Strategy {
        @Override
        public String name() {
            return "random";
        }

        @Override
        public OptionalInt trials() {
            return OptionalInt.of(count);
        }
    }

    /**
     * Successive halving: all settings are tried for an eighth of the steps, the better half of them for a quarter, and
     * so on, up to all steps; fewer rungs where there are fewer than eight settings. Every rung trains from the
     * beginning, because schedules depend on the number of steps.
     *
     * <p>Immutable.
     *
     * @param trials how many settings of each method are drawn; all combinations if empty
     */
    record Halving(OptionalInt trials) implements Strategy {
        private static final int MOST_RUNGS = 4;

        @Override
        public String name() {
            return "halving";
        }

        @Override
        public List<Rung> rungs(int settings, long iterations, int tau) {
            int rungs = Math.min(MOST_RUNGS, Integer.SIZE - Integer.numberOfLeadingZeros(settings));
            var all = new ArrayList<Rung>();
            for (int i = 0; i < rungs; i++) {
                long share = 1L << (rungs - 1 - i);
                long steps = Math.ceilDiv(Math.ceilDiv(iterations, share), tau) * tau; // whole rounds
                all.add(new Rung(Math.ceilDiv(settings, 1 << i), Math.min(iterations, steps)));
            }
            return all;
        }
    }

    /** Returns the name on the command line. */
    String name();

    /** Returns how many settings of each method are drawn by chance; empty where all combinations are tried. */
    OptionalInt trials();

    /** Returns the rungs for a number of settings, the last of them with all steps. */
    default List<Rung> rungs(int settings, long iterations, int tau) {
        return List.of(new Rung(settings, iterations));
    }
}
