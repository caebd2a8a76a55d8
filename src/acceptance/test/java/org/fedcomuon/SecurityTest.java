package org.fedcomuon;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaCall;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.properties.HasName;
import java.io.Externalizable;
import java.io.File;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.file.Files;
import java.nio.file.attribute.FileAttribute;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.jsontype.PolymorphicTypeValidator;

/**
 * What the program never does, whatever its input. Members in Spark's executors, in {@code src/spark/java}, are another
 * matter: Spark sends objects by serialization, and docs/cluster.md says how its channels are guarded.
 */
class SecurityTest {
    private static JavaClasses classes;

    @BeforeAll
    static void importMainClasses() {
        classes = Modules.importClasses();
    }

    @Test
    void nothingReadsOrWritesSerializedObjects() {
        noClasses()
                .should()
                .dependOnClassesThat()
                .belongToAnyOf(ObjectInputStream.class, ObjectOutputStream.class, Externalizable.class)
                .orShould()
                .dependOnClassesThat()
                .haveFullyQualifiedName("java.beans.XMLDecoder")
                .orShould()
                .dependOnClassesThat()
                .resideInAnyPackage("java.rmi..", "javax.naming..", "javax.script..", "javax.management.remote..")
                .check(classes);
    }

    /** Of a type that a document names, Jackson would make an object of any class. */
    @Test
    void noDocumentSaysWhichClassItIs() {
        noClasses()
                .should()
                .dependOnClassesThat()
                .areAssignableTo(PolymorphicTypeValidator.class)
                .orShould()
                .callMethodWhere(JavaCall.Predicates.target(
                                HasName.Predicates.nameMatching("activateDefaultTyping.*|polymorphicTypeValidator"))
                        .as("turn default typing on"))
                .orShould()
                .dependOnClassesThat()
                .haveFullyQualifiedName("com.fasterxml.jackson.annotation.JsonTypeInfo")
                .check(classes);
    }

    /** Arguments are handed on one by one: no shell takes a file's name apart. */
    @Test
    void noShellIsAsked() {
        noClasses()
                .should()
                .callMethod(Runtime.class, "exec", String.class)
                .orShould()
                .callMethod(Runtime.class, "exec", String[].class)
                .check(classes);
    }

    /** Benchmarks may have a file of no interest there, which is new, and their user's alone. */
    @Test
    void temporaryFilesAreBesideWhatTheyAreFor() {
        noClasses()
                .that()
                .resideOutsideOfPackage("org.fedcomuon.bench..")
                .should()
                .callMethod(Files.class, "createTempFile", String.class, String.class, FileAttribute[].class)
                .orShould()
                .callMethod(Files.class, "createTempDirectory", String.class, FileAttribute[].class)
                .orShould()
                .callMethod(File.class, "createTempFile", String.class, String.class)
                .check(classes);
    }
}
