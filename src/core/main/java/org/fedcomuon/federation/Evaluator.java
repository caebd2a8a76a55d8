package org.fedcomuon.federation;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/**
 * Evaluates a model. Called by the thread of the first device, between steps, while all other devices wait, unless they
 * {@linkplain #onDevices share the evaluation}.
 */
@FunctionalInterface
public interface Evaluator {
    /**
     * Returns metrics of the model, by name.
     *
     * @param step steps done so far
     * @param average the average of the clients' W, also at a step without an exchange; valid during the call only
     */
    Map<String, Double> evaluate(long step, Point average) throws Exception;

    /**
     * Returns the metrics of the model together with those of each client. Override it where they are known; by default
     * there are none of clients.
     */
    default Scores scores(long step, Point average) throws Exception {
        return new Scores(evaluate(step, average), List.of());
    }

    /**
     * Returns what evaluates models in the memory of these devices, all of which then take a share, instead of
     * {@link #scores} on the host. Called once, before a run. By default there is nothing of the kind, and the average
     * is copied to the host.
     *
     * @param devices by name
     */
    default Optional<OnDevices> onDevices(List<String> devices) {
        return Optional.empty();
    }

    /**
     * Returns an evaluator of the objective itself, for problems whose clients say the value of f: {@code f(E[g(W)])}
     * of each client, with g averaged over samples, as {@code train_objective} and {@code worst_client_objective}. It
     * has clients of its own, from {@link Problem#client}.
     *
     * @param samples of each client; the same in every evaluation
     * @param seed of the samples
     */
    static Evaluator ofObjective(Problem problem, int samples, long seed) {
        return new ObjectiveEvaluator(problem, samples, seed);
    }

    /**
     * The metrics of a model.
     *
     * <p>Immutable.
     *
     * @param metrics by name
     * @param clients the metrics of each client by name, in the order of the clients; empty if they are not known
     */
    record Scores(Map<String, Double> metrics, List<Map<String, Double>> clients) {
        /** Copies. */
        public Scores {
            metrics = copy(metrics);
            clients = clients.stream().map(Scores::copy).toList();
        }

        static Map<String, Double> copy(Map<String, Double> metrics) {
            return Collections.unmodifiableMap(new LinkedHashMap<>(metrics)); // in order, unlike Map.copyOf
        }
    }

    /**
     * An evaluation that the devices of a run share: each computes a share of it where it has the model, and only
     * numbers come back. Shares are in an order of their own, so that a result need not depend on how many there are.
     *
     * <p>Called by the threads of all devices at once, with a share each; {@link #scores} by that of the first device,
     * after them.
     */
    interface OnDevices {
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
        Scores scores(long step, List<double[]> shares) throws Exception;
    }
}
