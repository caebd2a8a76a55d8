package org.fedcomuon.testing;

/**
 * How often tests of chance repeat themselves: a little in every run, and for as long as it takes to be sure in
 * {@code ./fedcomuon test --soak}, which runs those with the tag {@code soak}.
 */
public final class Soak {
    /** The tag of tests that have more to do when there is time. */
    public static final String TAG = "soak";

    private Soak() {}

    /** How many mutated files a reader is given. */
    public static int mutations(int usual) {
        return times(usual, 100_000);
    }

    /** One of two numbers. */
    public static int times(int usual, int soaking) {
        return Boolean.getBoolean("tests.soak") ? soaking : usual;
    }
}
