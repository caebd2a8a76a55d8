package org.fedcomuon;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.fields;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaField;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Field;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What a service that embeds the library relies on: documented types, stated thread-safety, no hidden state. */
class ApiTest {

    /** At the beginning of a sentence of a type's comment: how threads may use it. */
    private static final Pattern STATEMENT =
            Pattern.compile("(?:^|[.:;] |<p>)(Immutable|Thread-safe|Not thread-safe|Called by)\\b");

    private static final Pattern SNIPPET =
            Pattern.compile("\\{@snippet\\s[^}]*?file=\"([^\"]+)\"[\\s*]+region=\"([^\"]+)\"");

    /** State of the process, each for a reason; whatever else is static never changes. */
    private static final Set<String> STATE = Set.of(
            "org.fedcomuon.federation.RunLock.HELD", // locks of files exclude no one in the same JVM
            "org.fedcomuon.internal.vendor.JCudaLibrary.REASONS", // a library is loaded once a process, or never
            "org.fedcomuon.format.SafetensorsWriter.LIVE", // unfinished files that are not to be swept away
            "org.fedcomuon.model.Torch.CLAIMED", // a setting of libtorch's that each thread makes once
            "org.fedcomuon.device.Devices.OF_THREAD", // a native context serves one thread
            "org.fedcomuon.format.AtomicFile.NAMES", // a source of chance
            "org.fedcomuon.internal.BackendLibrary.outcome", // a library is loaded once a process, when first used
            "org.fedcomuon.internal.NativeHeap.SINCE_REMINDER"); // of the collector, which is the process's

    /** Arrays that are never written to after their class is initialized, and that nobody else sees. */
    private static final Set<String> TABLES = Set.of(
            "org.fedcomuon.dashboard.Server.ALIVE",
            "org.fedcomuon.data.ImageSet.INTENSITIES",
            "org.fedcomuon.format.Npy.MAGIC");

    private static JavaClasses classes;
    private static Set<String> exported;
    private static final Map<Path, String> TEXTS = new HashMap<>();

    @BeforeAll
    static void importMainClasses() {
        exported = Modules.exported();
        assertThat(exported).contains("org.fedcomuon.federation").doesNotContain("org.fedcomuon.internal");
        classes = Modules.importClasses();
    }

    /** What users see, nested types included. */
    private static List<JavaClass> api() {
        return classes.stream().filter(ApiTest::isApi).toList();
    }

    private static boolean isApi(JavaClass type) {
        return exported.contains(type.getPackageName())
                && !type.isAnonymousClass()
                && !type.isLocalClass()
                && type.getModifiers().contains(JavaModifier.PUBLIC)
                && type.getEnclosingClass().map(ApiTest::isApi).orElse(true);
    }

    /**
     * Every exported type is one more that users may depend on and readers have to pass by; it was 147 once, and 165
     * before the lock of a run, the second way to an exact factor, event files, statistics over seeds, sweeps and the
     * noise of trackers.
     */
    @Test
    void fewTypesAreExported() {
        assertThat(api()).filteredOn(JavaClass::isTopLevelClass).hasSizeLessThanOrEqualTo(189);
    }

    @Test
    void everyTypeIsDocumented() {
        assertThat(api()).filteredOn(type -> comment(type).isEmpty()).isEmpty();
        assertThat(exported)
                .allSatisfy(name -> assertThat(text(Modules.source(name.replace('.', '/') + "/package-info.java")))
                        .startsWith("/**"));
    }

    @Test
    void everyTypeSaysHowThreadsMayUseIt() {
        assertThat(api())
                .filteredOn(type -> !type.isEnum()
                        && !type.isAnnotation()
                        && !Throwable.class.isAssignableFrom(type.reflect())
                        && !states(type)
                        && !(type.isRecord() && isImmutable(type.reflect(), new HashSet<>())))
                .as("without a sentence that begins as %s has it", STATEMENT)
                .isEmpty();
    }

    private static boolean states(JavaClass type) {
        return STATEMENT.matcher(comment(type)).find();
    }

    /** As far as types tell; collections must be copied by the record that holds them. */
    private static boolean isImmutable(Type type, Set<Type> seen) {
        if (!seen.add(type)) {
            return true;
        }
        if (type instanceof ParameterizedType generic) {
            return Arrays.stream(generic.getActualTypeArguments()).allMatch(each -> isImmutable(each, seen));
        }
        if (!(type instanceof Class<?> raw)) {
            return false;
        }
        if (raw.isPrimitive()
                || raw.isEnum()
                || raw == String.class
                || raw == Path.class
                || raw == Duration.class
                || raw == Boolean.class
                || (Number.class.isAssignableFrom(raw) && raw.getPackageName().equals("java.lang"))) {
            return true;
        }
        if (raw.isRecord()) {
            return Arrays.stream(raw.getRecordComponents())
                    .allMatch(component -> isKept(component) && isImmutable(component.getGenericType(), seen));
        }
        return raw.getName().startsWith("org.fedcomuon.")
                && comment(classes.get(raw)).contains("Immutable"); // even with a "but for": then it says so itself
    }

    private static boolean isKept(RecordComponent component) {
        Class<?> type = component.getType();
        if (!Collection.class.isAssignableFrom(type) && !Map.class.isAssignableFrom(type)) {
            return true;
        }
        return Pattern.compile("\\b%s = [^;]*(copyOf|unmodifiable|toList)".formatted(component.getName()))
                .matcher(text(file(classes.get(component.getDeclaringRecord()))))
                .find();
    }

    @Test
    void whatIsExportedMentionsOnlyWhatIs() {
        var hidden = new TreeSet<String>();
        for (JavaClass type : api()) {
            for (JavaCodeUnit unit : type.getCodeUnits()) {
                if (unit.getModifiers().contains(JavaModifier.PUBLIC)
                        && !unit.getModifiers().contains(JavaModifier.SYNTHETIC)) {
                    unit.getAllInvolvedRawTypes().stream()
                            .map(JavaClass::getBaseComponentType)
                            .filter(mentioned -> mentioned.getPackageName().startsWith("org.fedcomuon"))
                            .filter(mentioned -> !isApi(mentioned))
                            .forEach(mentioned -> hidden.add(unit.getFullName() + ": " + mentioned.getName()));
                }
            }
        }
        assertThat(hidden).isEmpty();
    }

    @Test
    void nothingStaticChanges() {
        fields().that(new DescribedPredicate<JavaField>("are one for all") {
                    @Override
                    public boolean test(JavaField field) {
                        return !field.getOwner().getPackageName().endsWith(".jmh_generated")
                                && !field.getModifiers().contains(JavaModifier.SYNTHETIC)
                                && !STATE.contains(field.getFullName())
                                && !TABLES.contains(field.getFullName())
                                && (field.getModifiers().contains(JavaModifier.STATIC)
                                        || field.getOwner().isEnum());
                    }
                })
                .should(new ArchCondition<>("never change") {
                    @Override
                    public void check(JavaField field, ConditionEvents events) {
                        events.add(new SimpleConditionEvent(
                                field, isConstant(field), field.getFullName() + " may change"));
                    }
                })
                .check(classes);
    }

    private static boolean isConstant(JavaField field) {
        if (!field.getModifiers().contains(JavaModifier.FINAL)
                || field.getRawType().isArray()) {
            return false;
        }
        if (!field.getRawType().getPackageName().startsWith("java.")) {
            return true; // what of ours is mutable says so, and loggers and mappers are meant to be shared
        }
        Class<?> type = field.getRawType().reflect();
        if (Collection.class.isAssignableFrom(type) || Map.class.isAssignableFrom(type)) {
            return isUnmodifiable(field);
        }
        return !type.getPackageName().equals("java.util.concurrent.atomic")
                && Stream.of(ThreadLocal.class, StringBuilder.class, MemorySegment.class, Random.class)
                        .noneMatch(mutable -> mutable.isAssignableFrom(type));
    }

    private static boolean isUnmodifiable(JavaField field) {
        try {
            Field reflected = field.reflect();
            reflected.setAccessible(true);
            Object owner = field.getModifiers().contains(JavaModifier.STATIC)
                    ? null
                    : field.getOwner().reflect().getEnumConstants()[0];
            String kind = reflected.get(owner).getClass().getName();
            return kind.startsWith("java.util.ImmutableCollections$")
                    || kind.startsWith("java.util.Collections$Unmodifiable");
        } catch (IllegalAccessException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void everySnippetIsOfATest() throws IOException {
        var broken = new ArrayList<String>();
        var shown = new HashSet<String>();
        int count = 0;
        for (Path file : Modules.allSources()) {
            String text = text(file);
            Matcher snippet = SNIPPET.matcher(text);
            while (snippet.find()) {
                count++;
                String name = snippet.group(1);
                String start = "// @start region=\"%s\"".formatted(snippet.group(2));
                shown.add(name + " " + start);
                Path source = Modules.tests(file).resolve(name);
                if (!name.matches(".*(Test|IT)\\.java")
                        || !Files.isRegularFile(source)
                        || text(source).split(Pattern.quote(start), -1).length != 2) {
                    broken.add(file + ": " + snippet.group());
                }
            }
            // Inline ones would be compiled by nobody; and whatever the pattern does not understand is not checked.
            assertThat(text.split("\\{@snippet", -1).length - 1)
                    .as("snippets of %s", file)
                    .isEqualTo((int) SNIPPET.matcher(text).results().count());
        }
        assertThat(broken).isEmpty();
        assertThat(count).isPositive();
        String all = "org/fedcomuon/SnippetsIT.java";
        assertThat(text(Modules.directory("core").resolve("test/java").resolve(all))
                        .lines()
                        .map(String::strip)
                        .filter(line -> line.startsWith("// @start")))
                .allSatisfy(line -> assertThat(shown).contains(all + " " + line));
    }

    private static Path file(JavaClass type) {
        JavaClass outermost = type;
        for (Optional<JavaClass> around = type.getEnclosingClass(); around.isPresent(); ) {
            outermost = around.get();
            around = outermost.getEnclosingClass();
        }
        return Modules.source(outermost.getName().replace('.', '/') + ".java");
    }

    /** The documentation comment before a type's declaration, without its asterisks and line breaks. */
    private static String comment(JavaClass type) {
        String annotations = "(?:@[\\w.]+(?:\\([^)]*\\))?(?:\\s*//[^\\n]*)?\\s*)*";
        String modifiers = "(?:(?:public|static|final|abstract|sealed|non-sealed)\\s+)*";
        Matcher declaration = Pattern.compile(
                        "/\\*\\*((?:(?!\\*/).)*)\\*/\\s*%s%s(?:class|record|interface|enum|@interface)\\s+%s\\b"
                                .formatted(annotations, modifiers, type.getSimpleName()),
                        Pattern.DOTALL)
                .matcher(text(file(type)));
        return declaration.find()
                ? declaration
                        .group(1)
                        .replaceAll("(?m)^\\s*\\*", " ")
                        .replaceAll("\\s+", " ")
                        .strip()
                : "";
    }

    private static String text(Path file) {
        return TEXTS.computeIfAbsent(file, each -> {
            try {
                return Files.readString(each);
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        });
    }
}
