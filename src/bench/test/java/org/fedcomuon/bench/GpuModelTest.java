package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.device.Precision;
import org.fedcomuon.model.Adaptation;
import org.fedcomuon.model.CifarCnn;
import org.fedcomuon.model.LanguageModel;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Block;
import org.junit.jupiter.api.Test;

/** The model's counts against counts by hand, and what must hold of its times on any GPU. */
class GpuModelTest {
    private static final GradientWork.Inputs DIGITS = new GradientWork.Inputs.Images(1, 28);
    private static final double EXACT = 1e-6;
    private static final MuonWork.Iteration FIVE = MuonWork.Iteration.of(5, true);

    private static double flops(WorkList work, String... operators) {
        return work.all().stream()
                .filter(each -> List.of(operators).contains(each.name()))
                .mapToDouble(KernelWork::flops)
                .sum();
    }

    private static double products(WorkList work) {
        return work.all().stream()
                .filter(KernelWork::product)
                .mapToDouble(KernelWork::flops)
                .sum();
    }

    @Test
    void leNetByHand() {
        WorkList work =
                GradientWork.recorded(new LeNet(), DIGITS, Optional.empty(), 20).work();
        double conv1 = 2.0 * 20 * 6 * 24 * 24 * 25;
        double conv2 = 2.0 * 20 * 16 * 8 * 8 * 6 * 25;
        double dense1 = 2.0 * 20 * 120 * 256;
        double dense2 = 2.0 * 20 * 10 * 120;
        assertThat(flops(work, "aten::convolution")).isEqualTo(conv1 + conv2);
        assertThat(flops(work, "aten::addmm")).isEqualTo(dense1 + dense2);
        assertThat(flops(work, "aten::mm")).isEqualTo(2 * (dense1 + dense2)); // of inputs and of weights
        // No gradient of the images is asked for; a bias is a sum over what comes from above.
        assertThat(flops(work, "aten::convolution_backward"))
                .isEqualTo(conv1 + 20 * 6 * 24 * 24 + 2 * conv2 + 20 * 16 * 8 * 8);
        assertThat(work.hostBytes()).isEqualTo(20 * 8 + 20 * 28 * 28 * 4 + 20 * 8); // indices, images, labels
    }

    @Test
    void aNumberIsAnArgumentOfAKernel() throws Exception {
        Tensor x = torch.zeros(10, 20);
        WorkList work = TorchWork.of(TorchRecorder.record(() -> {
            try (Tensor _ = x.mul(new Scalar(2.0))) {
                x.view(20, 10);
            }
        }));
        assertThat(work.all()).extracting(KernelWork::name).containsExactly("aten::mul");
        assertThat(work.launches()).isEqualTo(1);
        assertThat(work.bytes()).isBetween(2.0 * 4 * 200, 2.0 * 4 * 200 + 8); // and the number
    }

    @Test
    void aTransformerByHand() {
        int batch = 3;
        int length = 8;
        int width = 16;
        var network = new LanguageModel(new LanguageModel.Sizes(50, length, 2, width, 2, 24, 0.1));
        GradientWork gradient =
                GradientWork.recorded(network, new GradientWork.Inputs.Words(length), Optional.empty(), batch);
        double tokens = batch * length;
        double matrices = 2 * (4 * width * width + 2 * width * 24) + 50 * width; // the embedding is not multiplied
        double attention = 2 * 2 * (2.0 * batch * length * length * width); // scores and sums of two blocks
        // Forward, and twice as much backward.
        assertThat(products(gradient.work())).isEqualTo(3 * (2 * tokens * matrices + attention));
        double masks = tokens * (width + 2 * (2 * length + width + 24 + width));
        assertThat(gradient.maskElements()).isEqualTo(masks);
    }

    @Test
    void anExactGradientAfterAdaptationTakesMoreThanAFirstOrderOne() {
        Network network = new CifarCnn(new CifarCnn.Sizes(32, 4, 6, 3, 20, 10));
        var photographs = new GradientWork.Inputs.Images(3, 32);
        double plain = products(
                GradientWork.recorded(network, photographs, Optional.empty(), 2).work());
        double first = products(GradientWork.recorded(network, photographs, Optional.of(new Adaptation(0.1, true)), 2)
                .work());
        double exact = products(GradientWork.recorded(network, photographs, Optional.of(Adaptation.exact(0.1)), 2)
                .work());
        assertThat(first).isBetween(1.9 * plain, 2.1 * plain);
        assertThat(exact).isBetween(1.5 * first, 3 * first);
    }

    @Test
    void aStraightLineFromTwoSmallBatchesIsTheRecording() {
        GradientWork whole = GradientWork.recorded(new LeNet(), DIGITS, Optional.empty(), 20);
        GradientWork line = GradientWork.extrapolated(new LeNet(), DIGITS, Optional.empty(), 2, 3, 20);
        assertThat(line.work().launches()).isEqualTo(whole.work().launches());
        assertThat(line.work().flops())
                .isCloseTo(whole.work().flops(), within(EXACT * whole.work().flops()));
        assertThat(line.work().bytes())
                .isCloseTo(whole.work().bytes(), within(EXACT * whole.work().bytes()));
        assertThat(line.work().hostBytes()).isCloseTo(whole.work().hostBytes(), within(1e-3));
    }

    @Test
    void newtonSchulzByHand() {
        // Of 120 x 256: 7260 elements of a triangle with 256 products each, as many with 120, and 120 x 256 with 120.
        assertThat(MuonWork.small(120, 256, 5))
                .isEqualTo(5 * 2.0 * (7260 * 256 + 7260 * 120 + 120 * 256 * 120))
                .isEqualTo(MuonWork.small(256, 120, 5));
        // cuBLAS works both triangles out.
        WorkList large = MuonWork.byCublas(Design.WITH_WAITS, 1024, 768, 3, 5);
        assertThat(products(large)).isEqualTo(3 * 5 * 2.0 * (768L * 768 * 1024 * 2 + 768L * 768 * 768));
        assertThat(large.launches()).isEqualTo(5 + 5 * (3 * 3 + 2) + 3 + 1);
        assertThat(large.waits()).isEqualTo(2);
        WorkList unchecked = MuonWork.byCublas(Design.BY_CUBLAS, 1024, 768, 3, 5);
        assertThat(unchecked.launches()).isEqualTo(3 + 5 * (3 * 3 + 2) + 1 + 1);
        assertThat(unchecked.waits()).isZero();
    }

    /** The products of one matrix, listed by hand; launches of several matrices are shared. */
    @Test
    void groupedProductsByHand() {
        Block square = Block.matrix("square", 192, 192);
        Block wide = Block.matrix("wide", 192, 768);
        Block tall = Block.matrix("tall", 768, 192);
        double s = 192;
        double triangle = s * (s + 1);
        WorkList plain = GroupedWork.of(List.of(square), 3, FIVE);
        assertThat(plain.all())
                .extracting(KernelWork::name)
                .hasSize(1 + 15 + 1)
                .startsWith("fcm_k_schulz_load", "fcm_k_products")
                .endsWith("fcm_k_products", "fcm_k_schulz_finish");
        assertThat(products(plain)).isEqualTo(3 * 5 * (2 * triangle * s + 2 * s * s * s));
        // X X^T and Q X of two runs; Z five times, R Z and Z P three times, Q Z three times.
        double gram = 2 * (triangle * 768 + 2 * s * s * 768) + (5 + 3 + 3 + 3) * triangle * s;
        for (Block block : List.of(wide, tall)) {
            WorkList one = GroupedWork.of(List.of(block), 1, FIVE);
            assertThat(one.launches()).isEqualTo(1 + 17 + 1);
            assertThat(products(one)).isEqualTo(gram);
        }
        assertThat(products(GroupedWork.of(List.of(wide), 1, MuonWork.Iteration.of(5, false))))
                .isEqualTo(5 * (triangle * (768 + s) + 2 * s * s * 768))
                .isGreaterThan(gram);
        WorkList all = GroupedWork.of(List.of(square, wide, tall), 10, FIVE);
        assertThat(all.launches()).isEqualTo(1 + 17 + 1);
        assertThat(products(all)).isCloseTo(10 * (products(plain) / 3 + 2 * gram), within(EXACT * products(all)));
    }

    @Test
    void whatDoesNotFitIsDoneInPasses() {
        List<Block> blocks = List.of(Block.matrix("a", 256, 256), Block.matrix("b", 256, 256));
        double room = 4 * 256 * 256 * 4; // X, Y, A and B of a matrix
        MuonWork.Iteration both = FIVE.on(2 * room * 4 * 16);
        assertThat(GroupedWork.of(blocks, 10, both).launches()).isEqualTo(17);
        MuonWork.Iteration one = FIVE.on(room * 4 * 16);
        assertThat(GroupedWork.of(blocks, 10, one).launches()).isEqualTo(2 * 17);
        MuonWork.Iteration half = FIVE.on(room / 2 * 4 * 16); // eight clients at a time
        assertThat(GroupedWork.of(blocks, 10, half).launches()).isEqualTo(2 * 2 * 17);
        assertThat(GroupedWork.of(blocks, 10, half.in(Precision.BF16)).launches())
                .isEqualTo(2 * 17);
    }

    @Test
    void narrowerProductsMoveAndTakeLess() {
        List<Block> blocks = List.of(Block.matrix("a", 768, 768), Block.matrix("b", 768, 3072));
        WorkList fp32 = GroupedWork.of(blocks, 10, FIVE);
        WorkList tf32 = GroupedWork.of(blocks, 10, FIVE.in(Precision.TF32));
        WorkList bf16 = GroupedWork.of(blocks, 10, FIVE.in(Precision.BF16));
        assertThat(tf32.bytes()).isEqualTo(fp32.bytes());
        assertThat(bf16.bytes()).isBetween(0.5 * fp32.bytes(), 0.6 * fp32.bytes());
        for (Gpu gpu : Gpu.ALL) {
            assertThat(tf32.busy(gpu, false)).isLessThanOrEqualTo(fp32.busy(gpu, false));
            assertThat(bf16.busy(gpu, false)).isLessThan(0.7 * fp32.busy(gpu, false));
        }
        assertThat(fp32.busy(Gpu.A100, true)).isEqualTo(tf32.busy(Gpu.A100, false));
        assertThat(bf16.all()).extracting(KernelWork::name).contains("fcm_k_products_bf16", "fcm_k_schulz_load_bf16");
        assertThat(tf32.all()).extracting(KernelWork::name).contains("fcm_k_products_tf32", "fcm_k_schulz_load");
    }

    @Test
    void theLongestMatrixHoldsTheSmallKernelUp() {
        KernelWork kernel = MuonWork.step(Design.WITH_WAITS, new LeNet().layout(), 10, FIVE).all().stream()
                .filter(each -> each.name().equals("fcm_k_newton_schulz"))
                .findFirst()
                .orElseThrow();
        // As docs/kernels.md has it: 99 us on an RTX 4090.
        assertThat(kernel.busy(Gpu.RTX_4090, false)).isCloseTo(99e-6, within(1e-6));
        assertThat(kernel.scarcest(Gpu.RTX_4090, false)).isEqualTo(KernelWork.Bound.COMPUTE);
    }

    @Test
    void bytesOfOurKernels() {
        assertThat(FusedWork.compose(1000, 1).bytes()).isEqualTo(12_000);
        assertThat(FusedWork.compose(1000, 8).bytes()).isEqualTo(40_000);
        assertThat(FusedWork.storm(1000).bytes()).isEqualTo(16_000);
    }

    @Test
    void twoDevicesSendExponentsHalfOfTheSumsAndHalfOfTheMean() {
        for (int clients : new int[] {2, 10, 1000}) {
            assertThat(ExchangeWork.average(1000, clients, 2).linkBytes()).isEqualTo(1000 + 8 * 500 + 4 * 500);
        }
        assertThat(ExchangeWork.average(1000, 10, 1).linkBytes()).isZero();
    }

    private static GpuModel digits() {
        return new GpuModel(List.of(new GpuModel.Experiment(
                "digits",
                new LeNet(),
                GpuModel.Data.DIGITS,
                Optional.empty(),
                20,
                10,
                5,
                500,
                FIVE,
                new EvaluationWork.Plan(25, 15_180, 250, 0))));
    }

    @Test
    void aBetterMachineIsNeverSlower() {
        for (GpuModel.Case one : digits().cases()) {
            for (Gpu gpu : Gpu.ALL) {
                for (int devices : new int[] {1, 2}) {
                    double time = one.runSeconds(gpu, devices, false);
                    assertThat(one.runSeconds(gpu.withBandwidth(2 * gpu.bandwidth()), devices, false))
                            .isLessThanOrEqualTo(time);
                    assertThat(one.runSeconds(gpu.withLaunch(gpu.launch() / 2), devices, false))
                            .isLessThan(time);
                    assertThat(one.runSeconds(gpu, devices, true)).isLessThanOrEqualTo(time);
                    assertThat(one.runSecondsAsGraphs(gpu, devices)).isLessThan(time);
                }
                // Afterwards a step of LeNet is as many launches for ten clients as for five, so that two devices gain
                // nothing.
                assertThat(one.runTime(Design.WITH_WAITS, gpu, 2).steps())
                        .isLessThan(one.runTime(Design.WITH_WAITS, gpu, 1).steps());
            }
        }
    }

    @Test
    void varianceReductionTakesTwoGradients() {
        List<GpuModel.Case> cases = digits().cases();
        assertThat(cases).extracting(GpuModel.Case::method).containsExactly("fedcomuon", "fedcomuon-vr");
        assertThat(gradient(cases.get(1)).flops())
                .isEqualTo(2 * gradient(cases.get(0)).flops());
        assertThat(gradient(cases.get(1)).launches())
                .isEqualTo(2 * gradient(cases.get(0)).launches());
    }

    private static WorkList gradient(GpuModel.Case one) {
        return one.work().step(1).getOrDefault(RoundWork.Part.GRADIENT, new WorkList(List.of()));
    }

    @Test
    void whatBindsIsWhatMostTimeGoesTo() {
        Gpu gpu = Gpu.A100;
        assertThat(WorkList.of(KernelWork.tiny("nothing", 3)).bound(gpu, false)).isEqualTo(KernelWork.Bound.LAUNCHES);
        assertThat(WorkList.of(KernelWork.of("copy", 1, 0, 1e9)).bound(gpu, false))
                .isEqualTo(KernelWork.Bound.MEMORY);
        KernelWork product = KernelWork.product("product", 1, 1e12, 1e9);
        assertThat(WorkList.of(product).bound(gpu, false)).isEqualTo(KernelWork.Bound.COMPUTE);
        assertThat(product.busy(gpu, false)).isEqualTo(1e12 / 19.5e12);
        assertThat(product.busy(gpu, true)).isEqualTo(1e12 / 156e12);
        assertThat(WorkList.of(KernelWork.overLink("average", 0, 1e9, 1e9)).bound(gpu, false))
                .isEqualTo(KernelWork.Bound.LINK);
    }

    @Test
    void waitsOfAStepByHand() {
        List<GpuModel.Case> cases = digits().cases();
        for (GpuModel.Case one : cases) {
            RoundWork before = one.work().in(Design.WITH_WAITS);
            RoundWork after = one.work().in(Design.GROUPED);
            // For weights and values; of value, gradient and outer gradient, of which VR has two each and two norms;
            // of the small matrices; of four vectors; and of W once in five steps.
            int looked = one.work().reduced() ? 2 * 3 + 2 : 3;
            for (int devices : new int[] {1, 2}) {
                assertThat(before.waits(devices)).isCloseTo(2 + looked + 1 + 4 + 0.2, within(1e-12));
                // Two devices also wait before each exchange, once in five steps.
                int exchanges = one.work().reduced() ? 2 : 1;
                assertThat(after.waits(devices)).isCloseTo(2 + (devices - 1) * exchanges / 5.0, within(1e-12));
            }
            // Images, labels and the value of each evaluation of each client.
            int evaluations = one.work().reduced() ? 2 : 1;
            assertThat(one.torchWaits(Design.WITH_WAITS, 1)).isEqualTo(10 * evaluations * 3);
            assertThat(one.torchWaits(Design.WITH_WAITS, 2)).isEqualTo(5 * evaluations * 3);
            assertThat(one.torchWaits(Design.GROUPED, 1)).isZero();
        }
    }

    @Test
    void afterwardsLaunchesDoNotGrowWithTheClientsAndTheWorkDoes() {
        GradientWork gradient = GradientWork.recorded(new LeNet(), DIGITS, Optional.empty(), 20);
        WorkList one = gradient.of(Design.GROUPED, 1);
        WorkList ten = gradient.of(Design.GROUPED, 10);
        assertThat(ten.launches())
                .isEqualTo(one.launches())
                .isEqualTo(gradient.work().launches() - 1);
        assertThat(ten.flops()).isCloseTo(10 * one.flops(), within(EXACT * ten.flops()));
        assertThat(ten.flops()).isCloseTo(gradient.of(Design.WITH_WAITS, 10).flops(), within(EXACT * ten.flops()));
        // a look at all of M; squares, norms and step of all vectors; and two launches for all small matrices
        assertThat(MuonWork.step(Design.GROUPED, new LeNet().layout(), 10, FIVE).launches())
                .isEqualTo(6);
    }

    @Test
    void masksThatTheDeviceMakesDoNotCrossTheBus() {
        var network = new LanguageModel(new LanguageModel.Sizes(50, 8, 2, 16, 2, 24, 0.1));
        GradientWork gradient = GradientWork.recorded(network, new GradientWork.Inputs.Words(8), Optional.empty(), 3);
        double masks = gradient.of(Design.WITH_WAITS, 1).hostBytes()
                - gradient.of(Design.GROUPED, 1).hostBytes();
        assertThat(masks).isEqualTo(gradient.maskElements());
    }

    @Test
    void anEvaluationByHand() {
        GpuModel.Case one = digits().cases().getFirst();
        double image = 2.0 * (6 * 24 * 24 * 25 + 16 * 8 * 8 * 6 * 25 + 120 * 256 + 10 * 120);
        assertThat(products(one.evaluation().all())).isCloseTo(15_180 * image, within(EXACT * 15_180 * image));
        assertThat(one.experiment().evaluation().count(500)).isEqualTo(21);
        GpuModel.RunTime before = one.runTime(Design.WITH_WAITS, Gpu.A100, 2);
        assertThat(before.evaluations()).isEqualTo(21 * one.evaluation().all().flops() / EvaluationWork.HOST_FLOPS);
        GpuModel.RunTime after = one.runTime(Design.GROUPED, Gpu.A100, 2);
        assertThat(after.steps()).isEqualTo(one.runSeconds(Gpu.A100, 2, false)); // that of the code as it is
        assertThat(after.steps()).isLessThan(before.steps());
        assertThat(after.masks()).isZero();
    }

    @Test
    void everythingSaysThatItIsAModel() {
        GpuModel model = digits();
        assertThat(model.markdown())
                .startsWith("**" + GpuModel.LABEL)
                .contains("| digits | 10 | by cuBLAS | fp32 |")
                .contains("| digits | 10 | grouped | bf16 |") // all of LeNet is small
                .contains("recorded on the CPU with a batch of 20");
        Map<String, Object> json = model.json();
        assertThat(json).containsEntry("label", GpuModel.LABEL).containsEntry("measured", false);
    }
}
