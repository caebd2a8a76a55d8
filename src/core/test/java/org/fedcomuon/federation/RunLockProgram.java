package org.fedcomuon.federation;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A process that takes a lock and holds it until it is killed, or has lost it. Waits for the file that releases all
 * that compete; says {@code held}, {@code refused} or {@code lost} with the reason.
 */
final class RunLockProgram {
    static final RunLock.Pace FAST =
            new RunLock.Pace(Duration.ofMillis(300), Duration.ofMillis(1000), Duration.ofMillis(500));

    private RunLockProgram() {}

    /** Arguments: what to take (take, unused, or heartbeat: without locks of the kernel), directory, starting shot. */
    public static void main(String[] args) throws Exception {
        Path directory = Path.of(args[1]);
        System.out.println("ready");
        while (!Files.exists(Path.of(args[2]))) {
            Thread.onSpinWait();
        }
        try (RunLock lock = take(args[0], directory)) {
            System.out.println("held " + lock.directory() + ' ' + lock.notes());
            if (args[0].equals("unused")) {
                Files.writeString(lock.directory().resolve("metrics.jsonl"), "{}");
            }
            while (true) {
                Thread.sleep(20);
                lock.requireHeld();
            }
        } catch (RunLock.InUseException e) {
            System.out.println("refused " + e.getMessage());
        } catch (RunLock.LostException e) {
            System.out.println("lost " + e.getMessage());
        }
    }

    private static RunLock take(String how, Path directory) throws IOException {
        return switch (how) {
            case "take" -> RunLock.take(directory, FAST, RunLock.KernelLocks::tryAll);
            case "unused" -> RunLock.takeUnused(directory);
            // Every process locks another byte, as if its lock did not reach the others.
            case "heartbeat" ->
                RunLock.take(
                        directory,
                        FAST,
                        (channel, shared) ->
                                channel.tryLock(ThreadLocalRandom.current().nextLong(1L << 40), 1, shared));
            default -> throw new IllegalArgumentException(how);
        };
    }
}
