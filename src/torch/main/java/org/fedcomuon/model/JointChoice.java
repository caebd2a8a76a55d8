package org.fedcomuon.model;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.Sample;
import org.slf4j.LoggerFactory;

/**
 * Chooses between {@link Together}, {@link OneByOne} and the clients themselves, for the devices of one problem.
 * Thread-safe.
 */
final class JointChoice {
    private final Gradients gradients;
    private final Predicate<String> computesOn;
    private final TorchStream streams;
    private final Consumer<String> log;
    private final AtomicBoolean said = new AtomicBoolean();

    JointChoice(Gradients gradients) {
        this(gradients, Torch::computesOn, TorchStream.ofLibtorch(), LoggerFactory.getLogger(JointChoice.class)::info);
    }

    /**
     * @param computesOn whether libtorch computes in the memory of a device, by its name
     * @param streams how it is put on the stream of such a device
     * @param log gets the one line about a problem that is not differentiated together
     */
    JointChoice(Gradients gradients, Predicate<String> computesOn, TorchStream streams, Consumer<String> log) {
        this.gradients = gradients;
        this.computesOn = computesOn;
        this.streams = streams;
        this.log = log;
    }

    Gradients gradients() {
        return gradients;
    }

    /** Returns whether libtorch computes in the memory of a device; says so where it cannot, but could. */
    boolean isComputedOn(String device) {
        return computesOn.test(device);
    }

    /** Returns the masks of dropout of several clients, made where libtorch computes. */
    Dropout masks(List<Sample> xi, Device device) {
        return !device.isHost() && isComputedOn(device.name()) ? Dropout.of(xi, device) : Dropout.of(xi);
    }

    /**
     * Returns the oracle for a device; empty where the clients themselves are the fastest.
     *
     * @param what is differentiated, for the log
     * @param together the oracle of all clients at once; empty if there is none
     * @param oneByOne the oracle of one client after the other
     */
    Optional<JointOracle> on(
            Device device, String what, Optional<Supplier<JointOracle>> together, Supplier<JointOracle> oneByOne) {
        boolean there = !device.isHost() && isComputedOn(device.name());
        boolean wanted = gradients == Gradients.TOGETHER || (gradients == Gradients.AUTO && there);
        if (wanted && together.isEmpty() && said.compareAndSet(false, true)) {
            log.accept("%s: %s does not take several clients at once, so that gradients are computed client by client"
                    .formatted(device.name(), what));
        }
        Optional<Supplier<JointOracle>> chosen = together.filter(_ -> wanted);
        return there
                ? Optional.of(new OnStream(chosen.orElse(oneByOne).get(), device, streams))
                : chosen.map(Supplier::get);
    }
}
