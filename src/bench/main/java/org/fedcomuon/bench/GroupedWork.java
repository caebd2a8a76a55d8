package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.Precision;
import org.fedcomuon.problem.Block;

/**
 * Newton-Schulz of large matrices of all clients as work for a GPU, launch by launch as in
 * {@code native/cuda/large_schulz.cu}: a load, one launch for each stage of {@code native/common/schulz_program.h}, and
 * the step along the results. Operands that a product has twice are counted once, and of symmetric results a triangle.
 */
final class GroupedWork {
    private static final int TILE = 128;

    /** The limits of the room of a client, in bytes and as a share of the memory, and who it is for. */
    private static final long MOST_BYTES = 1L << 29;

    private static final int SHARE = 4;
    private static final int USUAL_CLIENTS = 16;

    private static final int VECTOR_BYTES = 16;
    private static final int ALIGNMENT = 32;

    /** What a stage does for one client; all products of it are one launch. */
    private static final class Stage {
        private double flops;
        private double elements;
        private double deepest;

        void add(double more, double operands, double depth) {
            flops += more;
            elements += operands;
            deepest = Math.max(deepest, depth);
        }
    }

    /** The stages of some matrices. */
    private static final class Program {
        private final List<Stage> stages = new ArrayList<>();
        private int at;

        void begin() {
            at = 0;
        }

        private Stage stage() {
            while (stages.size() <= at) {
                stages.add(new Stage());
            }
            return stages.get(at);
        }

        /** A = X X^T. */
        void gram(double s, double l) {
            stage().add(s * (s + 1) * l, s * l + s * s, l);
            at++;
        }

        /** A symmetric product of squares, with so many operands of that size. */
        void square(double s, int operands) {
            stage().add(s * (s + 1) * s, operands * s * s, s);
        }

        void next() {
            at++;
        }

        /** A X, with what may be added to it. */
        void apply(double s, double l) {
            stage().add(2 * s * s * l, s * s + 2 * s * l, s);
            at++;
        }
    }

    private GroupedWork() {}

    /** Returns the work for these matrices of so many clients. */
    static WorkList of(List<Block> blocks, int clients, MuonWork.Iteration iteration) {
        int elementBytes = iteration.precision() == Precision.BF16 ? Short.BYTES : Float.BYTES;
        long mostBytes = Math.min(MOST_BYTES, (long) (iteration.memory() / SHARE / USUAL_CLIENTS));
        var all = new ArrayList<KernelWork>();
        var pass = new ArrayList<Block>();
        long room = 0;
        for (Block block : blocks) {
            long own = elements(block, iteration, elementBytes);
            if (room > 0 && room + own > mostBytes / elementBytes) {
                all.addAll(pass(pass, room * elementBytes, mostBytes, clients, iteration));
                pass.clear();
                room = 0;
            }
            pass.add(block);
            room += own;
        }
        if (!pass.isEmpty()) {
            all.addAll(pass(pass, room * elementBytes, mostBytes, clients, iteration));
        }
        return new WorkList(all);
    }

    /** Returns the elements of X, Y and the squares of a matrix. */
    private static long elements(Block block, MuonWork.Iteration iteration, int elementBytes) {
        int unit = VECTOR_BYTES / elementBytes;
        long side = Math.min(block.rows(), block.cols());
        long matrix = roundUp(block.rows() * roundUp(block.cols(), unit), ALIGNMENT);
        long square = roundUp(side * roundUp(side, unit), ALIGNMENT);
        return 2 * matrix + (iteration.isGram(block) ? 5 : 2) * square;
    }

    private static long roundUp(long value, long unit) {
        return Math.ceilDiv(value, unit) * unit;
    }

    private static List<KernelWork> pass(
            List<Block> blocks, long bytes, long mostBytes, int clients, MuonWork.Iteration iteration) {
        var program = new Program();
        for (Block block : blocks) {
            program.begin();
            double s = Math.min(block.rows(), block.cols());
            double l = Math.max(block.rows(), block.cols());
            if (iteration.isGram(block)) {
                int from = 0;
                for (int restart : iteration.restarts()) {
                    gram(program, s, l, restart - from);
                    from = restart;
                }
                gram(program, s, l, iteration.steps() - from);
            } else {
                for (int i = 0; i < iteration.steps(); i++) {
                    program.gram(s, l);
                    program.square(s, 2); // B = b A + c A A
                    program.next();
                    program.apply(s, l);
                }
            }
        }
        var all = new ArrayList<KernelWork>();
        double size = blocks.stream().mapToDouble(Block::size).sum();
        int atOnce = Math.clamp(USUAL_CLIENTS * mostBytes / bytes, 1, Math.max(1, clients));
        for (int first = 0; first < clients; first += atOnce) {
            all.addAll(launches(program, size, Math.min(atOnce, clients - first), iteration.precision()));
        }
        return all;
    }

    /** R = X X^T, Q = I; Z = b R + c R R; Q = Q Z + a Q beside P = R Z + a R; R = Z P + a P; at the end X = Q X. */
    private static void gram(Program program, double s, double l, int steps) {
        program.gram(s, l);
        for (int i = 0; i < steps; i++) {
            boolean last = i + 1 == steps;
            program.square(s, i == 0 ? 3 : 2); // the first time, Q is made of Z
            program.next();
            if (i > 0) {
                program.square(s, 3);
            }
            if (!last) {
                program.square(s, 3);
            }
            if (i > 0 || !last) {
                program.next();
            }
            if (!last) {
                program.square(s, 3);
                program.next();
            }
        }
        program.apply(s, l);
    }

    private static List<KernelWork> launches(Program program, double size, int clients, Precision precision) {
        boolean narrow = precision == Precision.BF16;
        double elementBytes = narrow ? Short.BYTES : Float.BYTES;
        double n = size * clients;
        String ofProducts = precision == Precision.FP32 ? "fcm_k_products" : "fcm_k_products_" + precision;
        String suffix = narrow ? "_bf16" : "";
        var all = new ArrayList<KernelWork>();
        all.add(KernelWork.of("fcm_k_schulz_load" + suffix, 1, n, (Float.BYTES + elementBytes) * n));
        for (Stage stage : program.stages) {
            all.add(KernelWork.tiles(
                    ofProducts,
                    precision,
                    clients * stage.flops,
                    2.0 * TILE * TILE * stage.deepest,
                    clients * elementBytes * stage.elements));
        }
        all.add(KernelWork.of("fcm_k_schulz_finish" + suffix, 1, 2 * n, (2 * Float.BYTES + elementBytes) * n));
        return all;
    }
}
