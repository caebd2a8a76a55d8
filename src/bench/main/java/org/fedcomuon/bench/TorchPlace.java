package org.fedcomuon.bench;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.bytedeco.pytorch.Device;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;

/** Where libtorch computes when it is the peer of a device: on the CPU, or on the same GPU. */
final class TorchPlace {
    private final Optional<Device> gpu;

    private TorchPlace(Optional<Device> gpu) {
        this.gpu = gpu;
    }

    /** Returns the CPU. */
    static TorchPlace cpu() {
        return new TorchPlace(Optional.empty());
    }

    /** Returns the place of {@code device}, which {@link #obstacle} must allow. */
    static TorchPlace of(org.fedcomuon.device.Device device) {
        return new TorchPlace(device.isHost() ? Optional.empty() : Optional.of(new Device(device.name())));
    }

    /** Returns why libtorch cannot be measured against this device, in a line; empty if it can be. */
    static Optional<String> obstacle(org.fedcomuon.device.Device device) {
        if (device.isHost()) {
            return Optional.empty();
        }
        if (!device.name().startsWith("cuda:")) {
            return Optional.of("libtorch is left out: it does not compute on %s".formatted(device.name()));
        }
        return torch.cuda_is_available()
                ? Optional.empty()
                : Optional.of("libtorch is left out: this one has no CUDA; build with"
                        + " -Dpytorch.platform=linux-x86_64-gpu");
    }

    /** Returns {@code x} there; itself if it is there already. */
    Tensor here(Tensor x) {
        return gpu.map(there -> x.to(there, x.scalar_type())).orElse(x);
    }

    /** Waits until everything that was submitted is done, by libtorch or by others. */
    void synchronize() {
        gpu.ifPresent(there -> torch.cuda_synchronize(there.index()));
    }

    /**
     * Returns the settings worth trying, by name, each with what selects it: numbers of threads on the CPU, the best of
     * which depends on the shapes; a GPU has only one.
     */
    Map<String, Runnable> settings(int cores) {
        var settings = new LinkedHashMap<String, Runnable>();
        if (gpu.isPresent()) {
            settings.put("on the same GPU", () -> {});
        } else {
            TorchPeer.settings(cores)
                    .forEach(threads -> settings.put(threads.toString(), () -> TorchPeer.use(threads)));
        }
        return settings;
    }
}
