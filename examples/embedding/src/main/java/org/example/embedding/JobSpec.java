package org.example.embedding;

/**
 * The specification of a job.
 *
 * @param iterations local steps
 * @param tau local steps per round
 * @param seed equal seeds give bit-identical results
 * @param shops the number of shops
 */
record JobSpec(long iterations, int tau, long seed, int shops) {
    JobSpec {
        require("iterations", iterations, 1, 1_000_000_000);
        require("tau", tau, 1, 1000);
        require("shops", shops, 1, 1000);
    }

    private static void require(String name, long value, long least, long most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException("%s = %d; it must be from %d to %d".formatted(name, value, least, most));
        }
    }
}
