package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.fedcomuon.testing.GpuReport;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every operation on a GPU against the same operation on the CPU, at sizes of a model: the same operands, and the same
 * bits where no sum is involved. {@link DeviceOperationsIT} has odd sizes and refusals.
 */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#gpus")
class OperationsGpuIT {
    private static final int CLIENTS = 3;

    @Parameter
    private String name;

    @BeforeEach
    void assumeItIsHere() {
        TestDevices.open(name).close();
    }

    @ParameterizedTest
    @MethodSource("org.fedcomuon.device.OperationTable#operations")
    void isWhatTheCpuMakesOfIt(OperationTable.Operation operation) {
        int n = TestDevices.isSimulated(name) ? 11_003 : 1_000_003;
        double[][] expected = results("cpu:0", operation, n);
        double[][] actual = results(name, operation, n);
        assertThat(actual.length).isEqualTo(expected.length);
        double worst = 0;
        for (int i = 0; i < expected.length; i++) {
            worst = Math.max(worst, difference(actual[i], expected[i]));
        }
        GpuReport.ofThisRun().accuracy(name, operation.name(), worst, operation.allowed());
        assertThat(worst).isLessThanOrEqualTo(operation.allowed());
    }

    /** Everything in every buffer, gaps included: nothing may be written there. */
    private static double[][] results(String device, OperationTable.Operation operation, int n) {
        try (Device on = TestDevices.open(device);
                var operands = new Operands(on, 23)) {
            operation.body().run(on, operands, CLIENTS, n);
            return operands.contents();
        }
    }

    /** The largest, relative to the largest number there is; bit-identical values do not differ, including NaN. */
    private static double difference(double[] actual, double[] expected) {
        assertThat(actual).hasSameSizeAs(expected);
        double scale = Arrays.stream(expected)
                .filter(Double::isFinite)
                .map(Math::abs)
                .max()
                .orElse(1);
        double worst = 0;
        for (int i = 0; i < expected.length; i++) {
            if (Double.doubleToLongBits(actual[i]) != Double.doubleToLongBits(expected[i])) {
                double difference = Math.abs(actual[i] - expected[i]) / scale;
                worst = Math.max(worst, Double.isNaN(difference) ? Double.POSITIVE_INFINITY : difference);
            }
        }
        return worst;
    }
}
