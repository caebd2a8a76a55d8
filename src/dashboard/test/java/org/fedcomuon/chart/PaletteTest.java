package org.fedcomuon.chart;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** That the colours of lines can be seen on their paper, and told from each other by all kinds of eyes. */
class PaletteTest {
    /** What WCAG 2.1 asks of graphics. */
    private static final double LEAST_CONTRAST = 3;

    /** In OKLab, where white is 1 from black; orange and ochre, which this palette once had, were 0.012 apart. */
    private static final double LEAST_DISTANCE = 0.08;

    /** What linear RGB becomes to eyes that lack a kind of cone, after Machado, Oliveira and Fernandes (2009). */
    private static final Map<String, double[][]> EYES = Map.of(
            "most",
            new double[][] {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
            "without red",
            new double[][] {
                {0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}
            },
            "without green",
            new double[][] {
                {0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}
            },
            "without blue",
            new double[][] {
                {1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}
            });

    private static double[] linear(String hex) {
        var rgb = new double[3];
        for (int i = 0; i < 3; i++) {
            double value = Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16) / 255.0;
            rgb[i] = value <= 0.04045 ? value / 12.92 : Math.pow((value + 0.055) / 1.055, 2.4);
        }
        return rgb;
    }

    private static double luminance(double[] rgb) {
        return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
    }

    private static double[] times(double[][] matrix, double[] vector) {
        var product = new double[3];
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                product[i] += matrix[i][j] * vector[j];
            }
        }
        return product;
    }

    /** Where equal distances look about equally different, after Ottosson (2020). */
    private static double[] okLab(double[] rgb) {
        double[] cones = times(
                new double[][] {
                    {0.4122214708, 0.5363325363, 0.0514459929},
                    {0.2119034982, 0.6806995451, 0.1073969566},
                    {0.0883024619, 0.2817188376, 0.6299787005}
                },
                new double[] {Math.clamp(rgb[0], 0, 1), Math.clamp(rgb[1], 0, 1), Math.clamp(rgb[2], 0, 1)});
        return times(
                new double[][] {
                    {0.2104542553, 0.7936177850, -0.0040720468},
                    {1.9779984951, -2.4285922050, 0.4505937099},
                    {0.0259040371, 0.7827717662, -0.8086757660}
                },
                new double[] {Math.cbrt(cones[0]), Math.cbrt(cones[1]), Math.cbrt(cones[2])});
    }

    private static double distance(double[] a, double[] b) {
        return Math.hypot(a[0] - b[0], Math.hypot(a[1] - b[1], a[2] - b[2]));
    }

    private static String colour(String sheet, String name) {
        var found = Pattern.compile("--%s: #([0-9a-f]{6})".formatted(name)).matcher(sheet);
        assertThat(found.find()).as(name).isTrue();
        return found.group(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"light", "dark"})
    void everyColourIsSeenAndToldFromTheOthers(String paper) {
        String[] sheets = Markup.style().split("prefers-color-scheme: dark", -1);
        assertThat(sheets).hasSize(2);
        String sheet = sheets[paper.equals("light") ? 0 : 1];
        double ground = luminance(linear(colour(sheet, "paper")));
        List<String> colours = new ArrayList<>();
        for (int i = 1; i <= Look.COLOURS; i++) {
            String colour = colour(sheet, "c" + i);
            double own = luminance(linear(colour));
            assertThat((Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05))
                    .as(colour)
                    .isGreaterThanOrEqualTo(LEAST_CONTRAST);
            EYES.forEach((eyes, matrix) -> colours.forEach(other -> assertThat(
                            distance(okLab(times(matrix, linear(colour))), okLab(times(matrix, linear(other)))))
                    .as("%s and %s, to eyes %s", colour, other, eyes)
                    .isGreaterThanOrEqualTo(LEAST_DISTANCE)));
            colours.add(colour);
        }
        assertThat(sheet).doesNotContain("--c%d:".formatted(Look.COLOURS + 1));
    }
}
