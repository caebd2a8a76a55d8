package org.fedcomuon.model;

import java.util.List;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Sample;

/**
 * An oracle of libtorch on the stream of a device, in its memory. Confined to the device thread.
 *
 * @param oracle what libtorch computes
 * @param device whose stream it is
 * @param streams how libtorch is put on it
 */
record OnStream(JointOracle oracle, Device device, TorchStream streams) implements JointOracle {
    @Override
    public boolean computesOnDevice() {
        return true;
    }

    @Override
    public void inner(List<Sample> xi, Points w, Floats value, List<Points> jacobian) throws Exception {
        queue(() -> oracle.inner(xi, w, value, jacobian));
    }

    @Override
    public void hessianProduct(List<Sample> xi, Points w, Points direction, Points product) throws Exception {
        queue(() -> oracle.hessianProduct(xi, w, direction, product));
    }

    private void queue(TorchStream.Work work) throws Exception {
        Torch.claim();
        streams.run(device.name(), device.stream().address(), work);
    }
}
