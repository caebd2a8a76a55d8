package org.fedcomuon;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchRule;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.cli.Main;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Dependencies point downwards only, and native code is called from two packages only. */
class ArchitectureTest {
    /** From top to bottom; what shares a line is one layer. A package that does not exist yet is an empty one. */
    private static final List<List<String>> LAYERS = List.of(
            List.of("cli"),
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
            List.of("internal"));

    private static JavaClasses classes;

    @BeforeAll
    static void importMainClasses() throws URISyntaxException {
        // By path: in a patched module, as under test, a search by package would find the tests as well.
        var location = Main.class.getProtectionDomain().getCodeSource().getLocation();
        classes = new ClassFileImporter().importPath(Path.of(location.toURI()));
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

    @Test
    void benchStandsBesideExperimentAndOnlyTheCommandLineUsesIt() {
        check(noClasses()
                .that()
                .resideInAPackage("org.fedcomuon..")
                .and()
                .resideOutsideOfPackages(tree("bench"), tree("cli"))
                .should()
                .dependOnClassesThat()
                .resideInAPackage(tree("bench")));
        check(noClasses()
                .that()
                .resideInAPackage(tree("bench"))
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(tree("cli"), tree("report"), tree("experiment")));
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
    void nativeFunctionsAreBoundInTwoPackagesOnly() {
        check(noClasses()
                .that()
                .resideOutsideOfPackages(tree("internal"), tree("device"))
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
