package org.fedcomuon;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.lang.ArchRule;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.module.ModuleDescriptor;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Dependencies point downwards only, and native functions are bound in one package only. */
class ArchitectureTest {
    /** From top to bottom; what shares a line is one layer. A package that does not exist yet is an empty one. */
    private static final List<List<String>> LAYERS = List.of(
            List.of("bench"),
            List.of("cli"),
            List.of("sweep"),
            List.of("report", "dashboard"),
            List.of("experiment"),
            List.of("model", "data", "observe"),
            List.of("federation"),
            List.of("cluster"),
            List.of("method"),
            List.of("problem"),
            List.of("linalg"),
            List.of("format"),
            List.of("device"),
            List.of("internal"),
            List.of("file"));

    private static JavaClasses classes;

    @BeforeAll
    static void importMainClasses() {
        classes = Modules.importClasses();
    }

    @Test
    void dependenciesPointDownwards() {
        var architecture = layeredArchitecture().consideringOnlyDependenciesInLayers();
        var above = new ArrayList<String>();
        for (List<String> packages : LAYERS) {
            String layer = String.join("+", packages);
            architecture
                    .optionalLayer(layer)
                    .definedBy(packages.stream().map(ArchitectureTest::tree).toArray(String[]::new));
            architecture = above.isEmpty()
                    ? architecture.whereLayer(layer).mayNotBeAccessedByAnyLayer()
                    : architecture.whereLayer(layer).mayOnlyBeAccessedByLayers(above.toArray(String[]::new));
            above.add(layer);
        }
        architecture.allowEmptyShould(true).check(classes);
    }

    /** A module reads only modules above its line in the root pom: JPMS and Maven would both allow others. */
    @Test
    void modulesReadDownwardsOnly() {
        for (int i = 0; i < Modules.NAMED.size(); i++) {
            List<String> above = Modules.NAMED.subList(i, Modules.NAMED.size()).stream()
                    .map(name -> "org.fedcomuon." + name)
                    .toList();
            assertThat(Modules.descriptor(Modules.NAMED.get(i)).requires())
                    .extracting(ModuleDescriptor.Requires::name)
                    .as(Modules.NAMED.get(i))
                    .doesNotContainAnyElementsOf(above);
        }
        assertThat(Modules.descriptor("dashboard").requires())
                .extracting(ModuleDescriptor.Requires::name)
                .doesNotContain("org.fedcomuon.torch");
    }

    @Test
    void methodsAndFederationNeverSeeInternals() {
        check(noClasses()
                .that()
                .resideInAnyPackage(tree("method"), tree("federation"))
                .should()
                .dependOnClassesThat()
                .resideInAPackage(tree("internal")));
    }

    @Test
    void onlyDevicesCallVendorsLibraries() {
        check(noClasses()
                .that()
                .resideOutsideOfPackages(tree("internal.vendor"), tree("device"), tree("bench"))
                .should()
                .dependOnClassesThat()
                .resideInAPackage(tree("internal.vendor")));
        check(noClasses()
                .that()
                .resideOutsideOfPackages(tree("internal.vendor"), tree("bench"))
                .should()
                .dependOnClassesThat()
                .resideInAPackage("jcuda.."));
    }

    @Test
    void nativeFunctionsAreBoundInOnePackageOnly() {
        check(noClasses()
                .that()
                .resideOutsideOfPackages(tree("internal"), tree("bench")) // which measures calls
                .should()
                .dependOnClassesThat()
                .belongToAnyOf(Linker.class, SymbolLookup.class));
    }

    private static void check(ArchRule rule) {
        rule.allowEmptyShould(true).check(classes);
    }

    private static String tree(String name) {
        return "org.fedcomuon." + name + "..";
    }
}
