package org.fedcomuon.experiment;

import java.io.IOException;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.fedcomuon.cluster.MemberFailedException;

/** Training of all clients in this process. Thread-safe, as every engine is. */
public final class LocalTraining extends ProcessTraining {
    /** Used by {@link java.util.ServiceLoader}. */
    public LocalTraining() {}

    @Override
    public boolean isMeantBy(String cluster) {
        return cluster.equals(LOCAL);
    }

    @Override
    public String names() {
        return LOCAL;
    }

    @Override
    public void run(Job job, Supplier<View> view, Consumer<MemberFailedException> abandon)
            throws IOException, InterruptedException {
        train(
                job,
                view.get(),
                Optional.empty(),
                job.threads().orElse(Runtime.getRuntime().availableProcessors()));
    }
}
