package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.NoGradGuard;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;

/**
 * A straightforward implementation of the two algorithms with libtorch: one client at a time, one parameter at a time,
 * with torch operations for everything. Models, samples and settings are ours, so the weights are the same.
 */
final class TorchRounds implements AutoCloseable {
    /** The seconds of the parts of a run. */
    static final class Split {
        double gradient;
        double track;
        double orthogonalize;
        double average;
    }

    private final TorchPlace place;
    private final Network network;
    private final TorchLoss loss;
    private final Risk risk;
    private final long seed;
    private final List<NewtonSchulzSpec.Step> schulz;
    private final List<Client> clients = new ArrayList<>();
    private Split split = new Split();

    TorchRounds(
            TorchPlace place,
            Network network,
            TorchLoss loss,
            int clients,
            Risk risk,
            long seed,
            List<NewtonSchulzSpec.Step> schulz) {
        this.place = place;
        this.network = network;
        this.loss = loss;
        this.risk = risk;
        this.seed = seed;
        this.schulz = schulz;
        for (int k = 0; k < clients; k++) {
            this.clients.add(new Client(k));
        }
    }

    /** Returns where the time of all runs since the last call went. */
    Split takeSplit() {
        Split taken = split;
        split = new Split();
        return taken;
    }

    /** Runs Algorithm 1 from the initial weights and returns the average of W. */
    float[] fedCoMuon(float[] initial, int steps, int tau, double eta, double alpha, double beta) {
        for (Client c : clients) {
            c.begin(initial);
            c.u = (float) c.evaluate(c.w, c.drawn++);
            c.track(() -> c.momentum(0, 1, risk.derivative(c.u), gradients(c.w)));
        }
        for (int t = 0; t < steps; t++) {
            for (Client c : clients) {
                c.orthogonalized(eta);
                double g = c.evaluate(c.w, c.drawn++);
                c.track(() -> {
                    c.u = (float) (alpha * g + (1 - alpha) * c.u);
                    c.momentum(1 - beta, beta, risk.derivative(c.u), gradients(c.w));
                });
            }
            if ((t + 1) % tau == 0) {
                average(c -> c.w);
                average(c -> c.m);
            }
        }
        return mean();
    }

    /** Runs Algorithm 2 from the initial weights and returns the average of W. */
    float[] fedCoMuonVr(
            float[] initial, int steps, int tau, double eta, double alpha, double beta, double gamma, double rho) {
        for (Client c : clients) {
            c.begin(initial);
            c.u = (float) c.evaluate(c.w, c.drawn++);
            c.track(() -> {
                c.v = (float) risk.derivative(c.u);
                c.keepJacobian();
                c.momentum(0, 1, c.v, c.h);
                c.keepWeights();
            });
        }
        average(c -> c.m);
        for (int t = 0; t < steps; t++) {
            boolean sync = (t + 1) % tau == 0;
            for (Client c : clients) {
                c.orthogonalized(eta);
            }
            if (sync) {
                average(c -> c.w);
            }
            for (Client c : clients) {
                double g = c.evaluate(c.w, c.drawn);
                double gOld = c.evaluate(c.old, c.drawn++);
                c.track(() -> {
                    float u = (float) (g + (1 - alpha) * (c.u - gOld));
                    c.v = (float) (risk.derivative(u) + (1 - beta) * (c.v - risk.derivative(c.u)));
                    c.u = u;
                    c.recurJacobian(gamma);
                    c.momentum(1 - rho, rho, c.v, c.h);
                    c.keepWeights();
                });
            }
            if (sync) {
                average(c -> c.m);
            }
        }
        return mean();
    }

    private interface Part {
        List<Tensor> of(Client client);
    }

    /** Averages one parameter at a time: stack, mean, copy back. */
    private void average(Part part) {
        long start = System.nanoTime();
        int blocks = part.of(clients.getFirst()).size();
        for (int i = 0; i < blocks; i++) {
            try (var _ = new PointerScope();
                    var _ = new NoGradGuard()) {
                Tensor sum = torch.zeros_like(part.of(clients.getFirst()).get(i));
                for (Client c : clients) {
                    sum.add_(part.of(c).get(i));
                }
                sum.div_(new Scalar((double) clients.size()));
                for (Client c : clients) {
                    part.of(c).get(i).copy_(sum);
                }
            }
        }
        split.average += since(start);
    }

    private float[] mean() {
        average(c -> c.w);
        var values = new float[Math.toIntExact(network.layout().length())];
        int at = 0;
        for (Tensor block : clients.getFirst().w) {
            int size = (int) block.numel();
            block.cpu().data_ptr_float().get(values, at, size);
            at += size;
        }
        return values;
    }

    private static List<Tensor> gradients(List<Tensor> parameters) {
        return parameters.stream().map(Tensor::grad).toList();
    }

    private static double since(long start) {
        return (System.nanoTime() - start) * 1e-9;
    }

    /** The state of a client. */
    private final class Client {
        private final int number;
        private final List<Tensor> w = new ArrayList<>();
        private final List<Tensor> old = new ArrayList<>();
        private final List<Tensor> m = new ArrayList<>();
        private final List<Tensor> h = new ArrayList<>();
        private float u;
        private float v;
        private long drawn;

        Client(int number) {
            this.number = number;
            for (Block block : network.layout().blocks()) {
                long[] shape =
                        block.shape().stream().mapToLong(Integer::longValue).toArray();
                w.add(place.here(torch.zeros(shape)).set_requires_grad(true));
                old.add(place.here(torch.zeros(shape)).set_requires_grad(true));
                m.add(place.here(torch.zeros(shape)));
                h.add(place.here(torch.zeros(shape)));
            }
        }

        void begin(float[] initial) {
            int at = 0;
            try (var _ = new PointerScope();
                    var _ = new NoGradGuard()) {
                for (Tensor block : w) {
                    int size = (int) block.numel();
                    block.copy_(Tensor.create(Arrays.copyOfRange(initial, at, at + size))
                            .view(block.sizes()));
                    at += size;
                }
            }
            drawn = 0;
        }

        void track(Runnable work) {
            long start = System.nanoTime();
            try (var _ = new PointerScope();
                    var _ = new NoGradGuard()) {
                work.run();
            }
            split.track += since(start);
        }

        /** Returns the loss on a sample, and leaves the gradient in the parameters. */
        double evaluate(List<Tensor> at, long draw) {
            long start = System.nanoTime();
            try (var _ = new PointerScope()) {
                at.forEach(block -> block.mutable_grad().reset());
                Tensor value = loss.of(number, at, new Sample(seed, number, Sample.Stream.INNER, draw));
                value.backward();
                return value.item_float();
            } finally {
                split.gradient += since(start);
            }
        }

        /** Computes {@code M = keep M + b f' G}. */
        void momentum(double keep, double b, double slope, List<Tensor> gradients) {
            for (int i = 0; i < m.size(); i++) {
                m.get(i).mul_(new Scalar(keep)).add_(gradients.get(i), new Scalar(b * slope));
            }
        }

        void keepJacobian() {
            for (int i = 0; i < h.size(); i++) {
                h.get(i).copy_(w.get(i).grad());
            }
        }

        /** Computes {@code H = G + (1 - gamma)(H - Gold)}. */
        void recurJacobian(double gamma) {
            for (int i = 0; i < h.size(); i++) {
                h.get(i)
                        .sub_(old.get(i).grad(), new Scalar(1.0))
                        .mul_(new Scalar(1 - gamma))
                        .add_(w.get(i).grad(), new Scalar(1.0));
            }
        }

        void keepWeights() {
            for (int i = 0; i < m.size(); i++) {
                old.get(i).copy_(w.get(i));
            }
        }

        /** Computes {@code W -= eta O}: Newton-Schulz for matrices, the normalized momentum for the rest. */
        void orthogonalized(double eta) {
            long start = System.nanoTime();
            List<Block> blocks = network.layout().blocks();
            try (var _ = new NoGradGuard()) {
                for (int i = 0; i < blocks.size(); i++) {
                    Tensor target = w.get(i);
                    if (blocks.get(i).update() == Block.Update.ORTHOGONAL) {
                        try (var _ = new PointerScope()) {
                            long rows = blocks.get(i).rows();
                            TorchPeer.step(m.get(i).view(rows, -1), false, schulz, eta, target.view(rows, -1));
                        }
                    } else {
                        try (var _ = new PointerScope()) {
                            target.sub_(m.get(i).div(m.get(i).norm()), new Scalar(eta));
                        }
                    }
                }
            }
            split.orthogonalize += since(start);
        }
    }

    @Override
    public void close() {
        for (Client c : clients) {
            List.of(c.w, c.old, c.m, c.h).forEach(part -> part.forEach(Tensor::close));
        }
    }
}
