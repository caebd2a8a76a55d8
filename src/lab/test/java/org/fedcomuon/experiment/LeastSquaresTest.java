package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class LeastSquaresTest {
    /** {@code [[3, 1], [1, 2]] w = [9, 8]}, of two systems with one row each. */
    @Test
    void aSquareSystemIsSolved() {
        double[] w = LeastSquares.solve(
                List.of(new double[][] {{3, 1}}, new double[][] {{1, 2}}), List.of(new double[] {9}, new double[] {8}));
        assertThat(w).containsExactly(new double[] {2, 3}, within(1e-12));
    }

    /** By hand: the line through (0, 1), (1, 2), (2, 4), (3, 4) with the least squares is 1.1 + 1.1 x. */
    @Test
    void aLineIsFitted() {
        double[][] rows = {{1, 0}, {1, 1}, {1, 2}, {1, 3}};
        double[] w = LeastSquares.solve(Collections.singletonList(rows), List.of(new double[] {1, 2, 4, 4}));
        assertThat(w).containsExactly(new double[] {1.1, 1.1}, within(1e-12));
    }

    /** At the minimum the residual is orthogonal to every column; a leading zero needs a pivot. */
    @Test
    void residualsAreOrthogonalToTheColumns() {
        var random = new SplittableRandom(1);
        int n = 6;
        var a = new ArrayList<double[][]>();
        var b = new ArrayList<double[]>();
        for (int k = 0; k < 3; k++) {
            var rows = new double[4][n];
            for (double[] row : rows) {
                for (int j = k == 0 ? 1 : 0; j < n; j++) {
                    row[j] = random.nextGaussian();
                }
            }
            a.add(rows);
            b.add(random.doubles(4, -1, 1).toArray());
        }
        double[] w = LeastSquares.solve(a, b);
        for (int column = 0; column < n; column++) {
            double inner = 0;
            for (int k = 0; k < a.size(); k++) {
                for (int row = 0; row < 4; row++) {
                    double residual = -b.get(k)[row];
                    for (int j = 0; j < n; j++) {
                        residual += a.get(k)[row][j] * w[j];
                    }
                    inner += residual * a.get(k)[row][column];
                }
            }
            assertThat(inner).isCloseTo(0, within(1e-10));
        }
    }

    @Test
    void severalSolutionsAreRefused() {
        assertThatThrownBy(() -> LeastSquares.solve(
                        Collections.singletonList(new double[][] {{1, 2}, {2, 4}}), List.of(new double[] {1, 2})))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("several solutions");
    }
}
