package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.List;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class GpuSupportTest {
    private final List<String> warnings = new ArrayList<>();

    @Test
    void aGpuWithoutALibtorchForItIsToldOnceWithWhatToAdd() {
        var support = new GpuSupport(() -> false, warnings::add);
        assertThat(support.computesOn("cuda:1")).isFalse();
        assertThat(support.computesOn("cuda:0")).isFalse();
        assertThat(warnings).singleElement().asString().startsWith("cuda:1: ").contains("linux-x86_64-gpu");
        assertThat(warnings.getFirst()).doesNotContain("\n");
    }

    @Test
    void otherwiseThereIsNothingToTell() {
        var with = new GpuSupport(() -> true, warnings::add);
        assertThat(with.computesOn("cuda:0")).isTrue();
        var without = new GpuSupport(() -> false, warnings::add);
        assertThat(without.computesOn("cpu:0")).isFalse();
        assertThat(without.computesOn("cudasim:0")).isFalse();
        assertThat(with.computesOn("cudasim:0")).isFalse();
        assertThat(warnings).isEmpty();
    }

    /** A problem asks for every device that is not a CPU, whichever way it differentiates: that is who is told. */
    @ParameterizedTest
    @EnumSource(Gradients.class)
    void aProblemOnAGpuAsks(Gradients gradients) {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "no simulated devices");
        var support = new GpuSupport(() -> false, warnings::add);
        var choice = new JointChoice(
                gradients,
                name -> support.computesOn(name.replace("cudasim", "cuda")),
                (device, stream, work) -> {},
                line -> {});
        List<int[]> clients = List.of(new int[] {0}, new int[] {1});
        var problem = new Classification(
                new LeNet(),
                Examples.of(new float[2 * 784], new int[2], 1, 28, 28),
                clients,
                1,
                new ExponentialRisk(1));
        try (Device cpu = TestDevices.open("cpu:0")) {
            problem.choosing(choice).joint(cpu, List.of(0, 1));
            assertThat(warnings).isEmpty();
        }
        try (Device gpu = TestDevices.open("cudasim:0")) {
            problem.choosing(choice).joint(gpu, List.of(0, 1));
        }
        assertThat(warnings).singleElement().asString().startsWith("cuda:0: ");
    }

    /** And it asks that of libtorch, which warns by the log. */
    @Test
    void itAsksLibtorch() {
        assumeFalse(torch.cuda_is_available(), "this libtorch has CUDA, and nothing to warn of");
        assertThat(new JointChoice(Gradients.AUTO).isComputedOn("cuda:0")).isFalse();
        assertThat(Torch.GPUS.hasWarned()).isTrue();
    }
}
