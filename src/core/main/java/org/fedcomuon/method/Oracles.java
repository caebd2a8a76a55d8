package org.fedcomuon.method;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.jspecify.annotations.Nullable;

/**
 * The oracles of the clients on one device. Brings to them what they read, evaluates them on worker threads, takes away
 * what they wrote, and refuses results that are not finite. {@link Clients} documents what each evaluation computes.
 */
final class Oracles implements AutoCloseable {
    private final Clients clients;
    private final Device device;
    private final int d;
    private final Sampling sampling;
    private final ClientFault.Policy policy;
    private final Consumer<ClientFault> onFault;
    private final List<Client> oracles = new ArrayList<>();
    private final boolean onDevice; // whether they compute in the device's memory
    private final Workers workers;
    private final double[] lossSums;
    private final int[] lossCounts;
    private final Set<Variable> written = new HashSet<>(); // points, by oracles
    private @Nullable Variable plainJacobian;
    private @Nullable Variable plainValue;
    private @Nullable Variable plainOuter;

    Oracles(
            Clients clients,
            Problem problem,
            Sampling sampling,
            ClientFault.Policy policy,
            Consumer<ClientFault> onFault,
            int workerCount) {
        this.clients = clients;
        this.device = clients.device();
        this.d = problem.innerDimension();
        this.sampling = sampling;
        this.policy = policy;
        this.onFault = onFault;
        int count = clients.count();
        for (int k = 0; k < count; k++) {
            oracles.add(problem.client(clients.number(k)));
        }
        onDevice = !device.isHost() && oracles.stream().allMatch(oracle -> oracle.acceptsMemoryOf(device.name()));
        lossSums = new double[count];
        lossCounts = new int[count];
        workers = new Workers(device.name(), Math.min(workerCount, count));
    }

    void inner(Variable w, Variable value, Variable jacobian) {
        evaluate(
                Views.ofPoints(w),
                new Views(List.of(jacobian), List.of(value)),
                k -> oracles.get(k).inner(sampling.inner(k), w.point(k), value.values(k), jacobian.jacobian(k)));
        requireFinite(List.of(jacobian), List.of(value));
        addLoss(value);
    }

    void innerAtTwo(
            Variable w, Variable value, Variable jacobian, Variable wOld, Variable valueOld, Variable jacobianOld) {
        evaluate(
                Views.ofPoints(w, wOld),
                new Views(List.of(jacobian, jacobianOld), List.of(value, valueOld)),
                k -> oracles.get(k)
                        .innerAtTwo(
                                sampling.inner(k),
                                w.point(k),
                                value.values(k),
                                jacobian.jacobian(k),
                                wOld.point(k),
                                valueOld.values(k),
                                jacobianOld.jacobian(k)));
        requireFinite(List.of(jacobian, jacobianOld), List.of(value, valueOld));
        addLoss(value);
    }

    void outerGradient(Variable y, Variable gradient) {
        evaluate(
                Views.ofValues(y),
                Views.ofValues(gradient),
                k -> oracles.get(k).outerGradient(sampling.outer(k), y.values(k), gradient.values(k)));
        requireFinite(List.of(), List.of(gradient));
    }

    void outerGradientAtTwo(Variable y, Variable gradient, Variable yOld, Variable gradientOld) {
        evaluate(Views.ofValues(y, yOld), Views.ofValues(gradient, gradientOld), k -> {
            Sample zeta = sampling.outer(k);
            oracles.get(k).outerGradient(zeta, y.values(k), gradient.values(k));
            oracles.get(k).outerGradient(zeta, yOld.values(k), gradientOld.values(k));
        });
        requireFinite(List.of(), List.of(gradient, gradientOld));
    }

    void gradient(Variable w, Variable gradient) {
        if (d == 1) {
            if (plainValue == null) {
                plainValue = clients.scratch("loss", d);
            }
            inner(w, plainValue, gradient);
            return;
        }
        Sampled at = sample(w);
        outerGradient(at.value, at.outer);
        gradient.compose(1, at.jacobian, at.outer);
    }

    void loss(Variable w, Variable loss, Variable gradient) {
        if (d == 1) {
            inner(w, loss, gradient);
            return;
        }
        Sampled at = sample(w);
        evaluate(Views.ofValues(at.value), Views.ofValues(at.outer, loss), k -> {
            Sample zeta = sampling.outer(k);
            oracles.get(k).outerGradient(zeta, at.value.values(k), at.outer.values(k));
            loss.values(k)
                    .set(
                            0,
                            oracles.get(k)
                                    .outerValue(zeta, at.value.values(k))
                                    .orElseThrow(() -> new UnsupportedOperationException(
                                            "the method compares clients by f, whose value this client does not say")));
        });
        requireFinite(List.of(), List.of(at.outer, loss));
        gradient.compose(1, at.jacobian, at.outer);
    }

    /** What single-level methods need of a sample if d > 1: g, its Jacobian, and the gradient of f there. */
    private record Sampled(Variable value, Variable jacobian, Variable outer) {}

    private Sampled sample(Variable w) {
        if (plainValue == null || plainJacobian == null || plainOuter == null) {
            plainValue = clients.scratch("g", d);
            plainJacobian = clients.scratch("Jacobian", d * clients.n());
            plainOuter = clients.scratch("grad f", d);
        }
        inner(w, plainValue, plainJacobian);
        return new Sampled(plainValue, plainJacobian, plainOuter);
    }

    void hessianProduct(Variable w, Variable direction, Variable product) {
        evaluate(
                Views.ofPoints(w, direction),
                Views.ofPoints(product),
                k -> ((HessianProduct) oracles.get(k))
                        .hessianProduct(sampling.inner(k), w.point(k), direction.point(k), product.point(k)));
        requireFinite(List.of(product), List.of());
    }

    private void addLoss(Variable value) {
        if (d > 1) {
            return; // components of g are no losses
        }
        for (Run run : clients.runs()) {
            for (int k = run.first(); k < run.first() + run.count(); k++) {
                lossSums[k] += value.values(k).get(0);
                lossCounts[k]++;
            }
        }
    }

    double meanLoss(int k) {
        return lossSums[k] / lossCounts[k];
    }

    void forgetLosses() {
        Arrays.fill(lossSums, 0);
        Arrays.fill(lossCounts, 0);
    }

    boolean haveHessianProduct() {
        return oracles.stream().allMatch(HessianProduct.class::isInstance);
    }

    private interface Oracle {
        void call(int client) throws Exception;
    }

    /**
     * An oracle's view of some variables: points, which may be on the device, and values, which are always on the host.
     */
    private record Views(List<Variable> points, List<Variable> values) {
        static Views ofPoints(Variable... points) {
            return new Views(List.of(points), List.of());
        }

        static Views ofValues(Variable... values) {
            return new Views(List.of(), List.of(values));
        }
    }

    /** Returns the variables of {@code views} that pass through host memory. */
    private List<Variable> staged(Views views) {
        if (onDevice) {
            return views.values();
        }
        var all = new ArrayList<>(views.points());
        all.addAll(views.values());
        return all;
    }

    /** Everything that oracles read is brought to them, in one wait for all; what they write is taken away, in none. */
    private void evaluate(Views read, Views written, Oracle oracle) {
        written.points().forEach(Variable::becomeDifferent);
        written.values().forEach(Variable::becomeDifferent);
        if (device.isHost()) {
            evaluate(oracle);
            return;
        }
        clients.timed(Clients.Phase.GRADIENT, () -> {
            if (onDevice) {
                read.points().forEach(Variable::preparePoints);
                written.points().forEach(Variable::preparePoints);
            }
            staged(read).forEach(Variable::fetch);
            staged(written).forEach(Variable::prepare);
            clients.settle(); // what was written before has been taken away as well
        });
        evaluate(oracle);
        clients.timed(Clients.Phase.GRADIENT, () -> staged(written).forEach(Variable::store));
    }

    private void evaluate(Oracle oracle) {
        clients.timed(Clients.Phase.GRADIENT, () -> {
            int[] active = clients.runs().stream()
                    .flatMapToInt(run -> IntStream.range(run.first(), run.first() + run.count()))
                    .toArray();
            var thrown = new @Nullable Exception[active.length];
            workers.run(active.length, i -> {
                try {
                    oracle.call(active[i]);
                } catch (Exception e) {
                    thrown[i] = e;
                }
            });
            for (int i = 0; i < active.length; i++) {
                Exception e = thrown[i];
                if (e != null) {
                    var fault = new ClientFault(
                            clients.number(active[i]), clients.step(), ClientFault.Kind.THREW, e.toString());
                    tolerate(active[i], new ClientFaultException(fault, e));
                }
            }
        });
    }

    /**
     * Refuses results that are not finite. Values are on the host, where oracles have just written them. Points may be
     * on a GPU, which is not waited for: it finds the fault before anything is written from it, and the next wait
     * throws it. Only if the client is to be dropped, it has to be known at once.
     */
    private void requireFinite(List<Variable> points, List<Variable> values) {
        written.addAll(points);
        values.forEach(this::requireFiniteValues);
        for (Variable point : points) {
            if (device.isHost() || drops()) {
                requireFiniteNow(point);
            } else {
                clients.runs().forEach(run -> device.requireFinite(point.of(run)));
            }
        }
    }

    private void requireFiniteValues(Variable result) {
        for (Run run : clients.runs()) { // a list that does not change when a client is dropped
            for (int k = run.first(); k < run.first() + run.count(); k++) {
                Floats values = result.values(k);
                for (long i = 0; i < values.length(); i++) {
                    if (!Double.isFinite(values.get(i))) {
                        tolerate(k, notFinite(result, k, i, clients.step()));
                        break;
                    }
                }
            }
        }
    }

    private void requireFiniteNow(Variable result) {
        for (boolean again = true; again; ) {
            again = false;
            for (Run run : clients.runs()) {
                Device.Position place = device.firstNotFinite(result.of(run)).orElse(null);
                if (place != null) {
                    int k = run.first() + (int) place.client();
                    tolerate(k, notFinite(result, k, place.index(), clients.step()));
                    again = true; // the runs have changed
                    break;
                }
            }
        }
    }

    /** Returns whether oracles have written a variable. */
    boolean haveWritten(Variable variable) {
        return written.contains(variable);
    }

    /** Returns what is thrown if the result of a client was not finite at a step. */
    ClientFaultException notFinite(Variable result, int k, long index, long step) {
        String reason = String.format(
                Locale.ROOT,
                "%s is not finite in %s, at a W as large as %.3g",
                result.name(),
                clients.place(result, index),
                largestWeight(k));
        return new ClientFaultException(
                new ClientFault(clients.number(k), step, ClientFault.Kind.NOT_FINITE, reason), null);
    }

    /** Tells a model that has run away from a client that is out of order. */
    private double largestWeight(int k) {
        clients.weights().fetch(new Run(k, 1));
        device.synchronize();
        Floats w = clients.weights().values(k);
        double largest = 0;
        for (long i = 0; i < w.length(); i++) {
            largest = Math.max(largest, Math.abs(w.get(i)));
        }
        return largest;
    }

    /** Returns whether a client with a fault is dropped, instead of failing the run. */
    private boolean drops() {
        return policy != ClientFault.Policy.FAIL && clients.step() >= 0;
    }

    private void tolerate(int k, ClientFaultException e) {
        if (!drops()) {
            throw e;
        }
        clients.drop(k);
        onFault.accept(e.fault());
    }

    @Override
    public void close() {
        workers.close();
    }
}
