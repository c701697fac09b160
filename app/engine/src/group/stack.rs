//! Stack traces of Java, Kotlin, Scala, .NET, Python, JavaScript, Go, Ruby and PHP: the exception and the first frame that
//! belongs to the application. Only what a fingerprint needs, in one pass over the lines.

use std::borrow::Cow;

/// A frame without line numbers and addresses, which differ from build to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The function with everything that qualifies it.
    pub symbol: Cow<'a, str>,
}

impl Frame<'_> {
    /// The short form for people: class and method, or file and function.
    pub fn label(&self) -> &str {
        let symbol = self.symbol.as_ref();
        let tail = symbol.rsplit(['/', '\\']).next().unwrap_or(symbol);
        if tail.contains("->") || tail.contains("::") || tail.contains('#') || tail.contains(".(") {
            return tail;
        }
        match tail.rmatch_indices('.').nth(1) {
            Some((dot, _)) => &tail[dot + 1..],
            None => tail,
        }
    }
}

/// The first frame of the application in the innermost exception that has one; without any, the innermost frame.
pub fn first_application_frame(stack: &str) -> Option<Frame<'_>> {
    let mut found = Found::default();
    let mut before = "";
    for line in stack.lines() {
        if line.starts_with("Caused by: ") {
            found.begin_cause();
        } else if found.has_all(line) {
            continue;
        }
        if let Some((frame, order)) = read_line(line, before) {
            found.add(frame, order);
        }
        before = line;
    }
    found.application.or(found.any)
}

/// Which frame of an exception comes first in the text.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    InnermostFirst,
    /// Python.
    InnermostLast,
}

#[derive(Default)]
struct Found<'a> {
    application: Option<Frame<'a>>,
    any: Option<Frame<'a>>,
    /// Frames of these kinds were found since the last "Caused by".
    application_here: bool,
    any_here: bool,
}

impl<'a> Found<'a> {
    /// True when a frame in this line cannot change anything: of an exception whose innermost frame comes first, the first one of
    /// the application counts.
    fn has_all(&self, line: &str) -> bool {
        self.application_here && line.starts_with("\tat ")
    }

    fn begin_cause(&mut self) {
        self.application_here = false;
        self.any_here = false;
    }

    fn add(&mut self, (symbol, is_application): (&'a str, bool), order: Order) {
        let last_counts = order == Order::InnermostLast;
        if is_application && (last_counts || !self.application_here) {
            self.application = Some(Frame {
                symbol: tidy(symbol),
            });
            self.application_here = true;
        }
        if last_counts || !self.any_here {
            self.any = Some(Frame {
                symbol: tidy(symbol),
            });
            self.any_here = true;
        }
    }
}

/// The symbol of a line and whether it is the application's.
fn read_line<'a>(line: &'a str, before: &'a str) -> Option<((&'a str, bool), Order)> {
    let text = line.trim_start();
    if let Some(rest) = text.strip_prefix("at ") {
        return at_frame(rest).map(|frame| (frame, Order::InnermostFirst));
    }
    if let Some(rest) = text.strip_prefix("File \"") {
        return python_frame(rest).map(|frame| (frame, Order::InnermostLast));
    }
    if text.starts_with('#') {
        return php_frame(text).map(|frame| (frame, Order::InnermostFirst));
    }
    if line.starts_with('\t') && text.contains(".go:") {
        return go_frame(before, text).map(|frame| (frame, Order::InnermostFirst));
    }
    if text.contains(".rb:") {
        return ruby_frame(text).map(|frame| (frame, Order::InnermostFirst));
    }
    None
}

/// `at shop.OrderHandler.price(OrderHandler.java:12)` (JVM), `at Shop.Handler.Price(Order o) in /src/…:line 12` (.NET),
/// `at Handler.price (/srv/app/handler.js:12:5)` and `at /srv/app/handler.js:12:5` (JavaScript).
fn at_frame(rest: &str) -> Option<(&str, bool)> {
    let rest = rest.strip_prefix("async ").unwrap_or(rest);
    if let Some((symbol, place)) = rest.split_once(" (") {
        let is_jvm_or_net = symbol.contains('(');
        if !is_jvm_or_net {
            return Some((symbol, is_javascript_application(place)));
        }
    }
    let Some((symbol, _)) = rest.split_once('(') else {
        // A frame without a function is its file.
        let file = rest
            .split(':')
            .next()
            .filter(|file| file.contains(['/', '\\', '.']))?;
        return Some((file, is_javascript_application(rest)));
    };
    // The JVM writes a module or class loader before a slash: java.base/java.util…, app//shop…
    let symbol = symbol.rsplit('/').next().unwrap_or(symbol);
    Some((symbol, !is_framework(symbol)))
}

fn is_javascript_application(place: &str) -> bool {
    !(place.contains("node_modules")
        || place.starts_with("node:")
        || place.starts_with("internal/")
        || place.starts_with("<anonymous>")
        || place.starts_with("native"))
}

/// `File "/srv/app/tasks.py", line 5, in send`: the file's name stands for the module.
fn python_frame(rest: &str) -> Option<(&str, bool)> {
    let (path, _) = rest.split_once('"')?;
    let library = [
        "site-packages",
        "dist-packages",
        "/lib/python",
        "\\lib\\",
        "<frozen",
        "<string>",
    ];
    Some((rest, !library.iter().any(|part| path.contains(part))))
}

/// `#0 /srv/app/src/Handler.php(12): App\Handler->price()`
fn php_frame(text: &str) -> Option<(&str, bool)> {
    let (_, rest) = text.split_once(' ')?;
    let (place, call) = rest.split_once(": ")?;
    let symbol = call.split('(').next().unwrap_or(call);
    Some((
        symbol,
        !place.contains("/vendor/") && !place.starts_with("[internal"),
    ))
}

/// A line with the function, then one with the file: `main.price(0xc000…)`, `\t/srv/app/main.go:12 +0x1d`.
fn go_frame<'a>(before: &'a str, place: &str) -> Option<(&'a str, bool)> {
    let symbol = before
        .trim()
        .strip_prefix("created by ")
        .unwrap_or(before.trim());
    let arguments = symbol
        .rfind('(')
        .filter(|at| !symbol[*at..].starts_with("(*"));
    let symbol = &symbol[..arguments.unwrap_or(symbol.len())];
    let library =
        place.contains("/pkg/mod/") || place.contains("/go/src/") || place.contains("/vendor/");
    let runtime =
        symbol.starts_with("runtime.") || symbol.starts_with("runtime/") || symbol == "panic";
    (!symbol.is_empty()).then_some((symbol, !library && !runtime))
}

/// `/srv/app/handler.rb:12:in 'Handler#price'`
fn ruby_frame(text: &str) -> Option<(&str, bool)> {
    let (place, method) = text.split_once(":in ")?;
    let symbol = method.trim().trim_matches(['\'', '`', '"']);
    Some((
        symbol,
        !place.contains("/gems/") && !place.contains("/lib/ruby/"),
    ))
}

/// Beginnings of packages and namespaces that are not the application's, of the JVM and of .NET. Sorted by their bytes, and none
/// is the beginning of another, so that one search finds the only candidate.
const FRAMEWORKS: [&str; 83] = [
    "Amazon.",
    "Azure.",
    "Castle.",
    "Confluent.",
    "Dapper.",
    "EasyNetQ.",
    "JasperFx.",
    "MassTransit.",
    "MediatR.",
    "Microsoft.",
    "NServiceBus.",
    "Newtonsoft.",
    "Npgsql.",
    "Paramore.",
    "Polly.",
    "RabbitMQ.",
    "Rebus.",
    "System.",
    "Wolverine.",
    "akka.",
    "android.",
    "antlr.",
    "brave.",
    "ch.qos.logback.",
    "com.amazonaws.",
    "com.azure.",
    "com.fasterxml.",
    "com.google.",
    "com.mysql.",
    "com.rabbitmq.",
    "com.sun.",
    "com.zaxxer.",
    "feign.",
    "freemarker.",
    "groovy.",
    "io.awspring.",
    "io.confluent.",
    "io.grpc.",
    "io.ktor.",
    "io.lettuce.",
    "io.micrometer.",
    "io.micronaut.",
    "io.netty.",
    "io.opentelemetry.",
    "io.opentracing.",
    "io.quarkus.",
    "io.reactivex.",
    "io.smallrye.",
    "io.vertx.",
    "jakarta.",
    "java.",
    "javax.",
    "jdk.",
    "kotlin.",
    "kotlinx.",
    "liquibase.",
    "lombok.",
    "net.bytebuddy.",
    "net.sf.cglib.",
    "okhttp3.",
    "okio.",
    "oracle.",
    "org.apache.",
    "org.codehaus.",
    "org.eclipse.",
    "org.flywaydb.",
    "org.glassfish.",
    "org.hibernate.",
    "org.jboss.",
    "org.jooq.",
    "org.junit.",
    "org.mockito.",
    "org.mongodb.",
    "org.postgresql.",
    "org.slf4j.",
    "org.springframework.",
    "reactor.",
    "retrofit2.",
    "rx.",
    "scala.",
    "software.amazon.",
    "sun.",
    "zio.",
];

fn is_framework(symbol: &str) -> bool {
    let after = FRAMEWORKS.partition_point(|prefix| *prefix <= symbol);
    let candidate = after.checked_sub(1).map(|at| FRAMEWORKS[at]);
    candidate.is_some_and(|prefix| symbol.starts_with(prefix))
        || symbol.contains("$Proxy")
        || symbol.contains("$$FastClass")
}

/// Takes away what compilers add: lambdas, proxies, state machines, and for Python the path.
fn tidy(symbol: &str) -> Cow<'_, str> {
    if let Some((path, rest)) = symbol.split_once("\", line ") {
        let module = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let module = module.strip_suffix(".py").unwrap_or(module);
        let function = rest
            .split_once(", in ")
            .map_or("", |(_, function)| function);
        return Cow::Owned(format!("{module}.{function}"));
    }
    if symbol.contains('<') || symbol.contains('`') {
        return Cow::Owned(tidy_net(symbol));
    }
    if symbol.contains('$') {
        return Cow::Owned(tidy_jvm(symbol));
    }
    Cow::Borrowed(symbol)
}

/// `shop.Handler.<Price>d__5.MoveNext` and `shop.Handler.<>c__DisplayClass3_0.<Price>b__0` → `shop.Handler.Price`.
fn tidy_net(symbol: &str) -> String {
    let parts = symbol
        .split('.')
        .filter(|part| !part.starts_with("<>") && *part != "MoveNext");
    let parts: Vec<&str> = parts
        .filter_map(|part| {
            let inner = part
                .split_once('<')
                .and_then(|(_, rest)| rest.split_once('>'));
            let name = inner.map_or(part, |(name, _)| name);
            name.split('`').next().filter(|name| !name.is_empty())
        })
        .collect();
    parts.join(".")
}

/// `shop.Handler$$SpringCGLIB$$0.price` and `shop.Handler.lambda$price$3` → `shop.Handler.price`.
fn tidy_jvm(symbol: &str) -> String {
    let parts: Vec<&str> = symbol
        .split('.')
        .map(|part| {
            let part = part.split("$$").next().unwrap_or(part);
            let part = part.strip_prefix("lambda$").unwrap_or(part);
            part.trim_end_matches(|c: char| c == '$' || c.is_ascii_digit())
        })
        .collect();
    parts.join(".")
}

/// The exception that a text begins with, for example the wrapper in a Java stack.
pub fn head_class(text: &str) -> Option<&str> {
    if text
        .trim_start()
        .starts_with("Traceback (most recent call last)")
    {
        return python_error(text).map(|(class, _)| class);
    }
    text.lines().take(4).find_map(class_in)
}

/// The message of the exception that a text begins with.
pub fn head_message(text: &str) -> Option<&str> {
    let line = text.lines().take(4).find(|line| class_in(line).is_some())?;
    let class = class_in(line)?;
    let after = line.find(class)? + class.len();
    let message = line[after..].strip_prefix(": ")?;
    Some(message.split(" ---> ").next().unwrap_or(message))
}

/// The innermost exception: the last `Caused by` of the JVM, or the last `--->` of .NET.
pub fn root_class(text: &str) -> Option<&str> {
    let caused = text
        .rsplit('\n')
        .find_map(|line| line.strip_prefix("Caused by: "))
        .and_then(class_in);
    caused.or_else(|| {
        let arrow = text.rfind("---> ")?;
        class_in(text[arrow + 5..].lines().next()?)
    })
}

/// The last line of a Python traceback: class and message.
pub fn python_error(traceback: &str) -> Option<(&str, &str)> {
    let lines = traceback.trim_end().rsplit('\n');
    let mut lines = lines.take_while(|line| !line.starts_with("  "));
    // A message of several lines ends the traceback, so the first unindented line after the frames is meant.
    let line = lines.by_ref().last()?;
    let (class, message) = line.split_once(": ").unwrap_or((line, ""));
    is_name(class).then_some((class, message))
}

/// The class at the beginning of a line, or the first word that ends like an exception and is followed by a colon.
fn class_in(line: &str) -> Option<&str> {
    let line = line.trim();
    let head = line.split([':', ' ']).next()?;
    if is_name(head) && (head.contains('.') || ends_like_exception(head)) && !head.ends_with('.') {
        return Some(head);
    }
    let mut words = line.split([' ', '[', ']', '(']);
    words.find_map(|word| {
        let word = word.trim_end_matches([':', ',']);
        (is_name(word) && ends_like_exception(word)).then_some(word)
    })
}

fn ends_like_exception(name: &str) -> bool {
    [
        "Exception",
        "Error",
        "Throwable",
        "Fault",
        "Panic",
        "Failure",
    ]
    .iter()
    .any(|ending| name.ends_with(ending))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "._$+`\\".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stack: &str, label: &str) {
        let frame = first_application_frame(stack);
        assert_eq!(frame.as_ref().map(Frame::label), Some(label), "{frame:?}");
    }

    const JAVA: &str = "org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed\n\tat org.springframework.kafka.listener.X.decorate(X.java:1)\n\tat shop.Outer.run(Outer.java:2)\nCaused by: java.lang.NullPointerException: price\n\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)\n\tat app//shop.OrderHandler.price(OrderHandler.java:12)\n\t... 12 more";

    #[test]
    fn java_finds_the_frame_of_the_root_cause() {
        check(JAVA, "OrderHandler.price");
        assert_eq!(root_class(JAVA), Some("java.lang.NullPointerException"));
        assert_eq!(
            head_class(JAVA),
            Some("org.springframework.kafka.listener.ListenerExecutionFailedException")
        );
        assert_eq!(head_message(JAVA), Some("Listener failed"));
    }

    #[test]
    fn java_takes_an_outer_frame_when_the_cause_has_none_of_the_application() {
        let stack = "a.B: x\n\tat shop.Outer.run(Outer.java:2)\nCaused by: java.net.ConnectException: refused\n\tat java.base/sun.nio.ch.Net.connect(Net.java:1)";
        check(stack, "Outer.run");
        check(
            "a.B: x\n\tat java.util.List.get(List.java:1)\n\tat java.util.X.y(X.java:1)",
            "List.get",
        );
    }

    #[test]
    fn what_compilers_add_is_taken_away() {
        check(
            "x\n\tat shop.Handler$$SpringCGLIB$$0.price(<generated>)",
            "Handler.price",
        );
        check(
            "x\n\tat shop.Handler.lambda$price$3(Handler.java:9)",
            "Handler.price",
        );
        check(
            "x\n\tat shop.HandlerKt$run$1.invokeSuspend(Handler.kt:9)",
            "HandlerKt$run.invokeSuspend",
        );
        check(
            "x\n   at Shop.Handler.<Price>d__5.MoveNext() in /src/H.cs:line 9",
            "Handler.Price",
        );
        check(
            "x\n   at Shop.Handler.<>c__DisplayClass3_0.<Price>b__0(Order o)",
            "Handler.Price",
        );
    }

    #[test]
    fn dot_net_reads_the_inner_exception_first() {
        let stack = "System.AggregateException: many ---> System.InvalidOperationException: no price for 7\n   at System.Linq.First[T](IEnumerable`1 s)\n   at Shop.Pricing.Find(Order order) in /src/Pricing.cs:line 12\n   --- End of inner exception stack trace ---\n   at Shop.Handler.Handle(Order order)";
        check(stack, "Pricing.Find");
        assert_eq!(root_class(stack), Some("System.InvalidOperationException"));
        assert_eq!(head_message(stack), Some("many"));
    }

    #[test]
    fn python_takes_the_last_frame_outside_of_libraries() {
        let stack = "Traceback (most recent call last):\n  File \"/srv/lib/python3.11/site-packages/dramatiq/worker.py\", line 560, in process\n    x()\n  File \"/srv/app/tasks.py\", line 5, in send\n    raise\n  File \"/usr/lib/python3.11/smtplib.py\", line 5, in connect\nRuntimeError: smtp refused\nmore text";
        check(stack, "tasks.send");
        assert_eq!(python_error(stack), Some(("RuntimeError", "smtp refused")));
        assert_eq!(
            python_error("Traceback:\n  File \"a\"\nKeyError"),
            Some(("KeyError", ""))
        );
    }

    #[test]
    fn javascript_go_ruby_and_php_are_read() {
        check(
            "TypeError: x\n    at parse (node:internal/a:1:2)\n    at lib (/srv/node_modules/x/i.js:1:1)\n    at async Handler.price (/srv/app/handler.js:10:5)",
            "Handler.price",
        );
        check("Error: x\n    at /srv/app/handler.js:10:5", "handler.js");
        check(
            "goroutine 1 [running]:\nruntime.panicmem()\n\t/usr/local/go/src/runtime/panic.go:261\ngithub.com/acme/shop/orders.(*Handler).Price(0xc0001, 0x1)\n\t/srv/app/orders/handler.go:12 +0x1d",
            "orders.(*Handler).Price",
        );
        check(
            "RuntimeError\n/usr/lib/ruby/3.2/net.rb:1:in 'connect'\n/srv/app/handler.rb:12:in 'Handler#price'",
            "Handler#price",
        );
        check(
            "#0 /srv/vendor/x/Y.php(1): X\\Y->z()\n#1 /srv/src/Handler.php(12): App\\Handler->price()",
            "Handler->price",
        );
    }

    #[test]
    fn the_list_of_frameworks_is_sorted_and_each_is_found() {
        assert!(FRAMEWORKS.is_sorted());
        for prefix in FRAMEWORKS {
            assert!(is_framework(&format!("{prefix}a.B.c")), "{prefix}");
            let others = FRAMEWORKS.iter().filter(|other| other.starts_with(prefix));
            assert_eq!(others.count(), 1, "{prefix}");
        }
        for symbol in [
            "shop.Java.x",
            "javaland.X.y",
            "com.acme.java.X",
            "Systematic.X",
            "a",
            "zz",
        ] {
            assert!(!is_framework(symbol), "{symbol}");
        }
    }

    #[test]
    fn text_without_frames_has_none() {
        assert_eq!(
            first_application_frame("something at home (in bed)\nwent wrong"),
            None
        );
        assert_eq!(head_class("went wrong: a lot"), None);
        assert_eq!(
            head_class("5 unhandled exceptions: 11/30/2026 03:10: System.TimeoutException: late"),
            Some("System.TimeoutException")
        );
    }
}
