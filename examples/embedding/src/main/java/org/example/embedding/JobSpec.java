package org.example.embedding;

/**
 * What somebody asks the service for.
 *
 * @param iterations local steps
 * @param tau of them in a round
 * @param seed the same seed, the same bits
 * @param shops that take part
 */
record JobSpec(long iterations, int tau, long seed, int shops) {
    JobSpec {
        require("iterations", iterations, 1, 1_000_000_000);
        require("tau", tau, 1, 1000);
        require("shops", shops, 1, 1000);
    }

    private static void require(String name, long value, long least, long most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException("%s = %d; it is to be from %d to %d".formatted(name, value, least, most));
        }
    }
}
