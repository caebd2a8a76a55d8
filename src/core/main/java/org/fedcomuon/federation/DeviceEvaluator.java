package org.fedcomuon.federation;

import java.util.List;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Point;

/**
 * An evaluation that the devices of a run share: each computes a share of it where it has the model, and only numbers
 * come back. Shares are in an order of their own, so that a result need not depend on how many there are.
 *
 * <p>Called by the threads of all devices at once, with a share each; {@link #scores} by that of the first device,
 * after them.
 */
public interface DeviceEvaluator {
    /**
     * Computes one share.
     *
     * @param device whose thread calls
     * @param share from 0
     * @param shares the number of shares, all of which are computed
     * @param average the average of the clients' W in the memory of {@code device}, complete; valid during the call
     *     only
     */
    double[] share(Device device, int share, int shares, Point average) throws Exception;

    /**
     * Returns the metrics of the model from the results of all shares, in their order.
     *
     * @param step steps done so far
     */
    Evaluator.Scores scores(long step, List<double[]> shares) throws Exception;
}
