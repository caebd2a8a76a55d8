package org.fedcomuon.model;

import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Device;
import org.bytedeco.pytorch.Stream;
import org.bytedeco.pytorch.global.torch;

/**
 * Which stream of a GPU libtorch queues its work on, thread by thread. On the stream of a device, it runs between the
 * kernels that were launched before a call and those that are launched after it, and the host waits for neither.
 */
interface TorchStream {
    /**
     * Runs {@code work} of libtorch on a stream; afterwards the calling thread has the stream that it had before.
     *
     * @param device its name, such as {@code cuda:0}
     * @param stream its {@code cudaStream_t}
     */
    void run(String device, long stream, Work work) throws Exception;

    /** What runs on a stream. */
    @FunctionalInterface
    interface Work {
        void run() throws Exception;
    }

    /**
     * Returns that of libtorch itself. It uses functions that are in every libtorch, so that nothing of CUDA is loaded
     * on a machine without. It has not been executed: libtorch has a current stream only where it has CUDA, and no test
     * has met a GPU.
     */
    static TorchStream ofLibtorch() {
        return (name, stream, work) -> {
            try (var _ = new PointerScope()) {
                var device = new Device(name);
                Stream before = torch.getCurrentStream(device.index());
                // The number of a stream that is not libtorch's own is its address.
                torch.setCurrentStream(new Stream(Stream.Unsafe.UNSAFE, device, stream));
                try {
                    work.run();
                } finally {
                    torch.setCurrentStream(before);
                }
            }
        };
    }
}
