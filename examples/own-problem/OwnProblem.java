import module java.base;
import module org.fedcomuon.torch;
import org.bytedeco.pytorch.global.torch;

/** A CNN of one's own on data of one's own; {@code own-problem.yaml} is the same run. */
class OwnProblem {
    record Cnn(Layout layout) implements Network {
        @Override
        public Tensor logits(Parameters p, Tensor images, Dropout dropout) {
            Tensor features = torch.relu(Layers.convolution(p, "conv1", images, 1, 1)); // stride 1, padding 1
            return Layers.dense(p, "dense1", Layers.maxPool(features, 2, 2).flatten(1, -1));
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path here = Path.of("examples/own-problem");
        var data = ArrayFiles.load(new ArrayFiles(here.resolve("x.npy"), here.resolve("y.npy")), 0.25, 42);
        var clients = Partition.dirichlet(data.train(), 8, 0.3, 42);
        var cnn = new Cnn(Layout.of(Layers.convolutionBlocks("conv1", 1, 8, 3), Layers.denseBlocks("dense1", 288, 4)));
        var problem = new Classification(cnn, data.train(), clients, 20, new ExponentialRisk(0.5));
        var method = new FedCoMuon(
                Schedule.constant(0.02), Schedule.constant(0.2), Schedule.constant(0.1), Muon.standard());
        Path directory = arguments.length > 0 ? Path.of(arguments[0]) : Path.of("runs/own-problem");
        try (var judge = problem.judge(data.test())) {
            var result = Federation.of(problem, method)
                    .name("own-problem").iterations(300).tau(5).seed(42)
                    .evaluate(50, judge)
                    .record(RunFiles.unused(directory)) // as train does: metrics, model, report
                    .build()
                    .run();
            System.out.println(judge.evaluate(result.step(), result.weights()));
            System.out.println("sha256 " + result.sha256());
        }
    }
}
