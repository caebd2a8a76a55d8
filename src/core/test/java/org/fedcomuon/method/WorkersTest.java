package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class WorkersTest {
    @Test
    void noThreadIsAliveAfterTheyAreClosed() {
        for (int round = 0; round < 500; round++) {
            Set<Thread> seen = ConcurrentHashMap.newKeySet();
            try (var workers = new Workers("test", 4)) {
                var all = new CountDownLatch(4);
                workers.run(4, i -> {
                    seen.add(Thread.currentThread());
                    all.countDown();
                    awaitQuietly(all);
                });
            }
            seen.remove(Thread.currentThread());
            assertThat(seen).hasSize(3).noneMatch(Thread::isAlive);
        }
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
