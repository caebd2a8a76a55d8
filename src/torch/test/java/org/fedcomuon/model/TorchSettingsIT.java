package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;

import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.Test;

/** What libtorch is told before it computes anything, read back from libtorch itself. */
class TorchSettingsIT {
    @Test
    void gpusComputeInSinglePrecisionAndTheSameInEveryRun() {
        Torch.claim();
        var context = torch.globalContext();
        assertThat(context.allowTF32CuDNN()).as("TF32 in cuDNN").isFalse();
        assertThat(context.allowTF32CuBLAS()).as("TF32 in cuBLAS").isFalse();
        assertThat(context.deterministicCuDNN()).as("deterministic cuDNN").isTrue();
        assertThat(context.benchmarkCuDNN()).as("cuDNN chooses by time").isFalse();
        assertThat(context.deterministicAlgorithms())
                .as("deterministic algorithms")
                .isTrue();
        assertThat(context.deterministicFillUninitializedMemory())
                .as("fresh memory is filled")
                .isFalse();
    }
}
