package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class WorkersTest {
    @Test
    void noThreadIsAliveAfterTheyAreClosed() {
        for (int round = 0; round < 500; round++) {
            Set<Thread> seen = ConcurrentHashMap.newKeySet();
            try (var workers = new Workers("test", 4)) {
                var all = new CountDownLatch(4);
                workers.run(4, new Workers.Pace(), i -> {
                    seen.add(Thread.currentThread());
                    all.countDown();
                    awaitQuietly(all);
                });
            }
            seen.remove(Thread.currentThread());
            assertThat(seen).hasSize(3).noneMatch(Thread::isAlive);
        }
    }

    @Test
    void tasksThatAreDoneBeforeAnotherThreadIsAwakeAreNotShared() {
        try (var workers = new Workers("test", 2)) {
            var pace = new Workers.Pace();
            shareTwo(workers, pace); // their pace is not known yet
            boolean alone = false;
            for (int round = 0; round < 1000 && !alone; round++) { // the first ones take long for other reasons
                Set<Thread> seen = ConcurrentHashMap.newKeySet();
                workers.run(2, pace, i -> seen.add(Thread.currentThread()));
                workers.run(2, pace, i -> seen.add(Thread.currentThread()));
                alone = seen.equals(Set.of(Thread.currentThread()));
            }
            assertThat(alone).as("short ones ran here").isTrue();
        }
    }

    @Test
    void longTasksAreSharedAgainAfterShortOnes() {
        try (var workers = new Workers("test", 2)) {
            var pace = new Workers.Pace();
            for (int round = 0; round < 100; round++) {
                workers.run(2, pace, i -> {});
            }
            workers.run(2, pace, i -> LockSupport.parkNanos(2_000_000)); // maybe here alone, and from now on known
            shareTwo(workers, pace);
        }
    }

    /** Runs two tasks that wait for each other. */
    private static void shareTwo(Workers workers, Workers.Pace pace) {
        var both = new CountDownLatch(2);
        workers.run(2, pace, i -> {
            both.countDown();
            awaitQuietly(both);
        });
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
