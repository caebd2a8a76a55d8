package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.data.Partition;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.model.Adaptation;
import org.fedcomuon.model.CifarCnn;
import org.fedcomuon.model.Classification;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.MetaLearning;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Problem;

/**
 * A task of {@link RoundBench}: our problem, the loss of the other side, and both algorithms with the settings of the
 * preset.
 *
 * @param name the name of the task
 * @param rounds of the federation in a sample
 * @param mostSamples the limit of the number of samples, for long tasks
 */
record RoundTask(
        String name,
        Network network,
        Problem problem,
        TorchLoss loss,
        ExponentialRisk risk,
        int rounds,
        int mostSamples,
        List<Algorithm> algorithms) {
    static final int CLIENTS = 10;
    static final int TAU = 5;
    static final long SEED = 42;

    /** Our algorithm and that of the other side. */
    record Algorithm(Method method, Peer peer) {}

    /** Runs this many steps from the initial weights and returns the average of the weights. */
    interface Peer {
        float[] run(TorchRounds loop, float[] initial, int steps);
    }

    /** Returns {@code mnist-robust}: one client with 5000 images, the others with 20; {@code rounds} per sample. */
    static RoundTask mnist(int rounds) {
        var data = Mnist.bundled().train();
        List<Integer> sizes =
                IntStream.range(0, CLIENTS).mapToObj(k -> k == 0 ? 5000 : 20).toList();
        Partition partition = Partition.imbalanced(data.count(), sizes, SEED);
        List<int[]> shares =
                IntStream.range(0, CLIENTS).mapToObj(partition::indices).toList();
        var network = new LeNet();
        Examples examples = Examples.of(data);
        int batch = 20;
        var risk = new ExponentialRisk(0.5);
        return new RoundTask(
                "mnist",
                network,
                new Classification(network, examples, shares, batch, risk),
                TorchLoss.plain(LibtorchLeNet.straightforward(network), examples, shares, batch),
                risk,
                rounds,
                Integer.MAX_VALUE,
                List.of(fedCoMuon(0.01, 0.2, 0.1), fedCoMuonVr(0.01, 0.2, 0.8, 0.9, 0.2)));
    }

    /** Returns {@code cifar-maml-cnn}, on noise, because the content of an image does not affect the time. */
    static RoundTask cifarCnn(CifarCnn.Sizes sizes, int batch) {
        var network = new CifarCnn(sizes);
        int each = 4 * batch;
        Examples examples = noise(CLIENTS * each, sizes);
        var shares = new ArrayList<int[]>();
        for (int k = 0; k < CLIENTS; k++) {
            shares.add(IntStream.range(k * each, (k + 1) * each).toArray());
        }
        double inner = 0.03;
        var risk = new ExponentialRisk(0.5);
        return new RoundTask(
                "cifar-cnn",
                network,
                new MetaLearning(network, examples, shares, batch, Adaptation.exact(inner), risk),
                TorchLoss.adapted(network, examples, shares, batch, inner),
                risk,
                1,
                3,
                List.of(fedCoMuon(0.1, 0.7, 0.7), fedCoMuonVr(0.1, 0.1, 0.8, 0.7, 0.2)));
    }

    private static Examples noise(int count, CifarCnn.Sizes sizes) {
        var random = new SplittableRandom(SEED);
        Tensor inputs = torch.empty(count, 3, sizes.side(), sizes.side());
        var image = new float[3 * sizes.side() * sizes.side()];
        var labels = new long[count];
        FloatPointer memory = inputs.data_ptr_float();
        for (int i = 0; i < count; i++) {
            for (int j = 0; j < image.length; j++) {
                image[j] = (float) random.nextGaussian();
            }
            memory.position((long) i * image.length).put(image);
            labels[i] = random.nextInt(sizes.classes());
        }
        return new Examples(inputs, Tensor.create(labels));
    }

    private static Algorithm fedCoMuon(double eta, double alpha, double beta) {
        return new Algorithm(
                new FedCoMuon(fixed(eta), fixed(alpha), fixed(beta), Muon.standard()),
                (loop, initial, steps) -> loop.fedCoMuon(initial, steps, TAU, eta, alpha, beta));
    }

    private static Algorithm fedCoMuonVr(double eta, double alpha, double beta, double gamma, double rho) {
        return new Algorithm(
                new FedCoMuonVr(fixed(eta), fixed(alpha), fixed(beta), fixed(gamma), fixed(rho), Muon.standard()),
                (loop, initial, steps) -> loop.fedCoMuonVr(initial, steps, TAU, eta, alpha, beta, gamma, rho));
    }

    private static Schedule fixed(double value) {
        return Schedule.constant(value);
    }
}
