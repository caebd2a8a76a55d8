import module java.base;
import module org.fedcomuon.core;

/**
 * A user-defined problem in plain Java: linear regression from 8 inputs to 4 outputs over ten clients, one of which has
 * different data. The exponential risk improves the model for that client.
 *
 * <pre>./fedcomuon run examples/RobustRegression.java</pre>
 */
class RobustRegression {
    static final int IN = 8;
    static final int OUT = 4;

    /** A client, whose data stay with it; a sample is a mini-batch of its data. */
    static final class Regression implements Loss {
        final double[][] inputs = new double[100][IN];
        final double[][] targets = new double[100][OUT];

        Regression(long seed, double shift) {
            var random = new SplittableRandom(seed);
            for (int i = 0; i < inputs.length; i++) {
                Arrays.setAll(inputs[i], j -> random.nextGaussian());
                double[] x = inputs[i];
                Arrays.setAll(targets[i], o -> x[o] + shift * x[o + OUT] + 0.1 * random.nextGaussian());
            }
        }

        @Override
        public double evaluate(Sample xi, Point w, Point gradient) {
            return squares(xi.random().ints(20, 0, inputs.length).toArray(), w, gradient);
        }

        double squares(int[] batch, Point w, Point gradient) {
            Floats weight = w.block("weight"); // a row-major matrix, OUT x IN
            Floats bias = w.block("bias");
            gradient.values().fill(0);
            double loss = 0;
            for (int i : batch) {
                for (int o = 0; o < OUT; o++) {
                    double residual = bias.get(o) - targets[i][o];
                    for (int j = 0; j < IN; j++) {
                        residual += weight.get(o * IN + j) * inputs[i][j];
                    }
                    loss += residual * residual / 2 / batch.length;
                    gradient.block("bias").add(o, residual / batch.length);
                    for (int j = 0; j < IN; j++) {
                        gradient.block("weight").add(o * IN + j, residual * inputs[i][j] / batch.length);
                    }
                }
            }
            return loss;
        }
    }

    public static void main(String[] arguments) throws Exception {
        var layout = Layout.of(Block.matrix("weight", OUT, IN), Block.vector("bias", OUT));
        var clients = IntStream.range(0, 10).mapToObj(k -> new Regression(k, k == 0 ? 1 : 0)).toList();
        Schedule eta = Schedule.cosine(0.05, 0.001);
        for (Risk risk : List.of(Risk.mean(), new ExponentialRisk(0.5))) {
            var method = new FedCoMuon(eta, Schedule.constant(0.2), Schedule.constant(0.1), Muon.standard());
            var run = Federation.of(Problem.ofLosses(layout, clients, risk), method).iterations(500).tau(5).seed(42);
            Point w = run.build().run().weights();

            int[] all = IntStream.range(0, 100).toArray();
            var unused = new Point(layout, Floats.of(new float[(int) layout.length()]));
            double[] losses = clients.stream().mapToDouble(client -> client.squares(all, w, unused)).toArray();
            System.out.printf("%-50s worst client %.3f, mean %.3f%n", risk, Arrays.stream(losses).max().getAsDouble(),
                    Arrays.stream(losses).average().getAsDouble());
        }
    }
}
