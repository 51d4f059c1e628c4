//! What is accepted and what it means, what is refused and what is said then.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

use dyno_wml::ast::{
    Assigned, CommandKind, Direction, FilesetAttribute, Flowop, FlowopAttribute, FlowopClass,
    FlowopKind, FlowopType, Key, Listed, Operator, Piece, QuitMode, RandomLaw, Script,
    StatsCommand, ValueKind,
};
use dyno_wml::{Held, Number, Variables, parse, parse_bytes, parse_value};

fn script(text: &str) -> Script {
    parse(text, "test.f").unwrap()
}

fn refused(text: &str) -> String {
    parse(text, "test.f").unwrap_err().to_string()
}

fn notes(text: &str) -> Vec<String> {
    script(text)
        .notes
        .into_iter()
        .map(|note| note.message)
        .collect()
}

/// The variables after the `set` commands of a text.
fn variables(text: &str) -> Variables {
    let script = script(text);
    let mut variables = Variables::new("test.f", false);
    for command in &script.commands {
        match &command.kind {
            CommandKind::Set(assignment) => variables.assign(assignment).unwrap(),
            CommandKind::SetParameter {
                variable,
                part,
                value,
            } => {
                variables.set_parameter(variable, *part, value).unwrap();
            }
            _ => {}
        }
    }
    variables
}

fn held(text: &str, name: &str) -> Held {
    variables(text).get(name).unwrap().clone()
}

fn flowops(text: &str) -> Vec<Flowop> {
    let text = format!("define process name=p {{ thread name=t {{ {text} }} }}");
    let script = script(&text);
    let CommandKind::DefineProcess(process) = &script.commands[0].kind else {
        panic!("{script:?}");
    };
    process.threads[0].flowops.clone()
}

#[test]
fn values_have_the_type_that_they_are_written_in() {
    assert_eq!(held("set $a=16k", "a"), Held::Integer(16_384));
    assert_eq!(held("set $a=true", "a"), Held::Boolean(true));
    assert_eq!(held("set $a=/tmp/x", "a"), Held::Text("/tmp/x".to_owned()));
    assert_eq!(
        held("set $a=\"two words\"", "a"),
        Held::Text("two words".to_owned())
    );
    assert_eq!(held("set $a=1.5", "a"), Held::Float(1.5));
    assert_eq!(held("set $a=10G", "a"), Held::Integer(10 << 30));
    assert_eq!(held("set $a=0x20", "a"), Held::Integer(32));
    assert_eq!(held("set $a=08", "a"), Held::Integer(8));
    assert_eq!(
        held("set $a=mean:16384;gamma:1.5", "a"),
        Held::Text("mean:16384;gamma:1.5".to_owned())
    );
}

#[test]
fn a_variable_may_stand_in_brackets_and_have_one_letter() {
    assert_eq!(
        held("set $n=1 set $(m)=$n set ${k}=$(n)", "k"),
        Held::Integer(1)
    );
    assert_eq!(held("set $n=1 set $(m)=$n", "m"), Held::Integer(1));
}

#[test]
fn a_closing_bracket_after_a_variable_is_not_part_of_its_name() {
    let text = "set $mean=100 set $a=randvar(type=uniform, mean=$mean)\n\
                set $t=randvar(type=tabular, min=$mean, randtable={{100, $mean, $mean}})";
    for name in ["a", "t"] {
        let variables = variables(text);
        let (law, _) = variables
            .distribution(variables.get(name).unwrap())
            .unwrap();
        assert!((law.mean() - 100.0).abs() < 1e-9);
    }
}

#[test]
fn arithmetic_of_older_files_goes_from_left_to_right() {
    let of = |text: &str| held(&format!("set $a=10 set $b=4 set $c={text}"), "c");
    assert_eq!(of("$a * $b"), Held::Integer(40));
    assert_eq!(of("$a + $b * 2"), Held::Integer(28));
    assert_eq!(of("$a / $b"), Held::Integer(2));
    assert_eq!(of("$a/4"), Held::Integer(2));
    assert_eq!(of("$a - 4"), Held::Integer(6));
    assert_eq!(of("$a-4"), Held::Text("10-4".to_owned()));
    assert_eq!(of("20 - $a - 3"), Held::Integer(7));
    assert_eq!(of("$a*$b"), Held::Integer(40));
    let CommandKind::Set(assignment) = &script("set $c=$a + 1").commands[0].kind else {
        panic!("no set");
    };
    assert!(
        matches!(&assignment.value, Assigned::Arithmetic { rest, .. } if rest[0].0 == Operator::Add)
    );
    assert!(script("set $c=$a").older);
}

#[test]
fn arithmetic_that_has_no_result_is_refused_when_it_is_carried_out() {
    for text in [
        "set $a=1 / 0",
        "set $a=1 - 2",
        "set $a=16g * 16g * 16g",
        "set $a=$none * 2",
        "set $a=tmp set $b=$a * 2",
    ] {
        let script = script(text);
        let mut variables = Variables::new("test.f", false);
        let results: Vec<_> = script
            .commands
            .iter()
            .map(|command| match &command.kind {
                CommandKind::Set(assignment) => variables.assign(assignment),
                _ => Ok(()),
            })
            .collect();
        assert!(results.iter().any(Result::is_err), "{text}");
    }
}

#[test]
fn a_path_of_older_files_may_begin_with_a_variable() {
    assert_eq!(
        held("set $a=/mnt set $b=$a/sub/2", "b"),
        Held::Text("/mnt/sub/2".to_owned())
    );
    assert_eq!(
        held("set $a=/mnt set $c=x set $b=$a/$c", "b"),
        Held::Text("/mnt/x".to_owned())
    );
    let script = script("define fileset name=a,path=$dir/sub,entries=1");
    let CommandKind::DefineFileset(fileset) = &script.commands[0].kind else {
        panic!("no fileset");
    };
    let value = fileset.attributes.get(FilesetAttribute::Path).unwrap();
    assert!(matches!(&value.kind, ValueKind::Text(text) if text.pieces.len() == 2));
    assert_eq!(variables("set $dir=/tmp").name(value).unwrap(), "/tmp/sub");
}

#[test]
fn a_reference_is_read_when_it_is_used() {
    let text = "set $a=1 define fileset name=x,path=/tmp,entries=$a set $a=2";
    let script = script(text);
    let CommandKind::DefineFileset(fileset) = &script.commands[1].kind else {
        panic!("no fileset");
    };
    let value = fileset.attributes.get(FilesetAttribute::Entries).unwrap();
    assert_eq!(variables(text).number(value).unwrap(), Number::Fixed(2.0));
}

#[test]
fn a_value_from_outside_takes_the_place_of_the_first_one() {
    let script = script("set $a=1 set $b=$a set $a=2 echo \"$a\"");
    let mut variables = Variables::new("test.f", false);
    variables
        .replace(&script, "a", parse_value("7k", "--set").unwrap())
        .unwrap();
    let mut seen = Vec::new();
    for command in &script.commands {
        if let CommandKind::Set(assignment) = &command.kind {
            variables.assign(assignment).unwrap();
            seen.push(variables.get("a").unwrap().clone());
        }
    }
    assert_eq!(variables.get("b"), Some(&Held::Integer(7168)));
    assert_eq!(
        seen,
        [Held::Integer(7168), Held::Integer(7168), Held::Integer(2)]
    );
    assert_eq!(variables.unused_replacements().count(), 0);
    let message = variables
        .replace(&script, "$c", parse_value("1", "--set").unwrap())
        .unwrap_err();
    assert!(
        message.contains("has no variable $c, expected one of: a, b"),
        "{message}"
    );
}

#[test]
fn a_variable_that_the_file_only_uses_may_be_given_from_outside() {
    let script = script("define fileset name=x,path=$dir,entries=1");
    let mut variables = Variables::new("test.f", false);
    variables
        .replace(&script, "dir", parse_value("/mnt/a b", "--set").unwrap())
        .unwrap();
    assert_eq!(
        variables.get("dir"),
        Some(&Held::Text("/mnt/a b".to_owned()))
    );
}

#[test]
fn a_value_from_outside_is_a_number_a_truth_a_law_or_any_text() {
    let value = |text: &str| {
        let mut variables = Variables::new("--set", false);
        let script = script("set $a=1");
        variables
            .replace(&script, "a", parse_value(text, "--set")?)
            .unwrap();
        let CommandKind::Set(assignment) = &script.commands[0].kind else {
            panic!("no set");
        };
        variables.assign(assignment)?;
        Ok::<_, dyno_wml::Error>(variables.get("a").unwrap().clone())
    };
    assert_eq!(value("1m").unwrap(), Held::Integer(1 << 20));
    assert_eq!(value("false").unwrap(), Held::Boolean(false));
    for text in ["/var/tmp/a=b", "a b", "$HOME", "", "1 2", "\"q\"", "é"] {
        assert_eq!(value(text).unwrap(), Held::Text(text.to_owned()), "{text}");
    }
    assert!(matches!(
        value("cvar(type=cvar-gamma,parameters=mean:4k)").unwrap(),
        Held::Custom(_)
    ));
    assert!(matches!(
        value("randvar(type=uniform,mean=4k)").unwrap(),
        Held::Random(_)
    ));
    assert!(value("cvar(type=cvar-gamma").is_err());
    assert!(value("cvar(type=cvar-gamma) x").is_err());
}

#[test]
fn texts_hold_variables_and_what_nobody_set_stays() {
    let script = script(r#"echo "in $dir: $(date) costs $5, ${n}x $size.min \$dir""#);
    let CommandKind::Echo(text) = &script.commands[0].kind else {
        panic!("no echo");
    };
    let variables = variables("set $dir=/tmp set $n=3 set $size=randvar(type=gamma,min=7,mean=9)");
    assert_eq!(variables.text(text), "in /tmp: $(date) costs $5, 3x 7 $dir");
}

#[test]
fn several_quoted_texts_are_one() {
    let script = script("echo \"a $b\" \"c\"");
    let CommandKind::Echo(text) = &script.commands[0].kind else {
        panic!("no echo");
    };
    assert_eq!(text.pieces.len(), 3);
    assert_eq!(text.pieces[2], Piece::Literal("c".to_owned()));
}

#[test]
fn words_of_the_language_are_names_where_a_name_is_wanted() {
    let script = script("define fileset name=files,path=/run,entries=1 echo \"run\"");
    assert_eq!(script.commands.len(), 2);
}

#[test]
fn the_last_of_two_attributes_holds() {
    let flowop = &flowops("flowop read name=a,iosize=1k,iosize=2k")[0];
    let value = flowop.attributes.get(FlowopAttribute::IoSize).unwrap();
    assert_eq!(value.kind, ValueKind::Integer(2048));
}

#[test]
fn an_attribute_without_a_value_is_true_and_filename_is_filesetname() {
    let flowop = &flowops("flowop read name=a,filename=f,random,dsync=false")[0];
    assert_eq!(flowop.kind, FlowopKind::Known(FlowopType::Read));
    let attributes = &flowop.attributes;
    assert_eq!(
        attributes.get(FlowopAttribute::Random).unwrap().kind,
        ValueKind::Boolean(true)
    );
    assert_eq!(
        attributes.get(FlowopAttribute::DSync).unwrap().kind,
        ValueKind::Boolean(false)
    );
    assert!(attributes.get(FlowopAttribute::FilesetName).is_some());
}

#[test]
fn lists_of_attributes_without_a_comma_between_are_one_with_a_note() {
    let text = "define process name=p { thread name=t { flowop read name=a, fd=1 iosize=2k } }";
    assert!(notes(text)[0].contains("a `,` is missing"));
    assert_eq!(
        flowops("flowop read name=a, fd=1 iosize=2k")[0]
            .attributes
            .iter()
            .count(),
        3
    );
}

#[test]
fn a_composite_flowop_has_local_variables_and_its_use_their_values() {
    let text = "set $outer=x define flowop name=c, $set, $n=3 { flowop read name=r, filesetname=$set, iosize=$n }
                define process name=p { thread name=t { flowop c name=u, $set=$outer } }";
    let script = script(text);
    let (CommandKind::DefineComposite(composite), CommandKind::DefineProcess(process)) =
        (&script.commands[1].kind, &script.commands[2].kind)
    else {
        panic!("{script:?}");
    };
    let within = variables(text)
        .within(composite, &process.threads[0].flowops[0])
        .unwrap();
    assert_eq!(within.get("set"), Some(&Held::Text("x".to_owned())));
    assert_eq!(within.get("n"), Some(&Held::Integer(3)));
    assert_eq!(within.get("outer"), Some(&Held::Text("x".to_owned())));
}

#[test]
fn modes_runs_and_lists_are_as_they_are_written() {
    let kinds: Vec<CommandKind> = script(
        "set mode quit firstdone set mode nousestats run psrun -10 60 psrun 5 psrun list list flowop debug 4 quit",
    )
    .commands
    .into_iter()
    .map(|command| command.kind)
    .collect();
    assert_eq!(kinds[0], CommandKind::SetMode(QuitMode::FirstDone));
    assert_eq!(kinds[1], CommandKind::NoUsage);
    assert_eq!(kinds[2], CommandKind::Run { seconds: None });
    assert!(matches!(
        &kinds[3],
        CommandKind::PsRun {
            period: Some(-10),
            seconds: Some(_)
        }
    ));
    assert_eq!(
        kinds[4],
        CommandKind::PsRun {
            period: Some(5),
            seconds: None
        }
    );
    assert_eq!(
        kinds[5],
        CommandKind::PsRun {
            period: None,
            seconds: None
        }
    );
    assert_eq!(kinds[6], CommandKind::List(Listed::All));
    assert_eq!(kinds[7], CommandKind::List(Listed::Flowops));
    assert_eq!(kinds[8], CommandKind::Debug(4));
    assert_eq!(kinds[9], CommandKind::Quit);
}

#[test]
fn older_commands_are_accepted_each_with_a_note() {
    for text in [
        "load fileserver",
        "vars",
        "help",
        "exit",
        "usage \"x\"",
        "log \"x\"",
        "stats clear",
        "stats snap",
        "stats directory /tmp/$x",
        "stats command \"vmstat 1\"",
        "stats dump \"x\"",
        "create fileset",
        "create filesets",
        "create processes",
        "shutdown processes",
        "shutdown",
        "warmup 10",
        "list",
        "foreach $n in 1, 2 { echo \"$n\" }",
        "define randvar name=$x, type=gamma, mean=5",
        "set $a=$b",
        "set $a=$b * 2",
        "set $a.mean=5",
        "define fileset name=a,path=/tmp,entries=1,cached=true",
        "define fileset name=a,path=/tmp,entries=1,filesizegamma=0",
        "define fileset name=a,path=/tmp,entries=1,datasource=entro,entropy=3.4",
        "define file name=a,path=/tmp,dirwidth=5",
        "fscheck path=/tmp fstype=ufs",
    ] {
        let script = script(text);
        assert!(script.older && !script.notes.is_empty(), "{text}");
    }
    assert!(matches!(
        &script("stats snap").commands[0].kind,
        CommandKind::Stats(StatsCommand::Snap)
    ));
}

/// What is between them is what `run` does in one.
#[test]
fn an_older_file_without_a_run_runs_while_it_sleeps() {
    let kinds = |text: &str| -> Vec<CommandKind> {
        script(text)
            .commands
            .into_iter()
            .map(|command| command.kind)
            .collect()
    };
    let seconds = |kind: &CommandKind| match kind {
        CommandKind::Run {
            seconds: Some(value),
        }
        | CommandKind::Warmup(value) => value.kind.clone(),
        other => panic!("{other:?}"),
    };
    let plain = kinds("create processes stats clear sleep 60 stats snap shutdown processes quit");
    assert_eq!(seconds(&plain[2]), ValueKind::Integer(60));
    let warm = kinds("sleep 1 create processes sleep 30 stats clear sleep $time stats snap");
    assert!(matches!(&warm[0], CommandKind::Sleep(_)));
    assert!(matches!(&warm[2], CommandKind::Warmup(_)));
    assert_eq!(seconds(&warm[2]), ValueKind::Integer(30));
    assert!(matches!(seconds(&warm[3]), ValueKind::Variable(variable) if variable.name == "time"));
    let text =
        "create processes stats clear sleep 5 stats snap stats clear sleep 5 stats snap sleep 2";
    let CommandKind::Run {
        seconds: Some(total),
    } = &kinds(text)[3]
    else {
        panic!("{:?}", kinds(text));
    };
    assert_eq!(
        variables(text).fixed(total).unwrap().to_bits(),
        12f64.to_bits()
    );
    for text in [
        "create processes sleep 5 run 10",
        "sleep 5",
        "create processes",
        "create processes shutdown sleep 5",
    ] {
        let runs = kinds(text)
            .iter()
            .filter(|kind| matches!(kind, CommandKind::Run { .. }))
            .count();
        assert_eq!(runs, usize::from(text.contains("run")), "{text}");
    }
}

#[test]
fn data_of_a_given_entropy_need_a_number_of_bits_and_a_source_that_is_known() {
    let entropy = |attributes: &str| {
        let text = format!("define fileset name=a,path=/tmp,entries=1{attributes}");
        let CommandKind::DefineFileset(fileset) = script(&text).commands.remove(0).kind else {
            panic!("no fileset");
        };
        variables(&text)
            .entropy(&fileset)
            .map_err(|error| error.to_string())
    };
    assert_eq!(entropy(""), Ok(None));
    assert_eq!(entropy(",entropy=8"), Ok(Some(8.0)));
    assert_eq!(entropy(",datasource=entro,entropy=7.41"), Ok(Some(7.41)));
    for (attributes, expected) in [
        (
            ",entropy=8.5",
            "an entropy of 8.5 bits a byte, expected 0 to 8",
        ),
        (",datasource=entro", "expected `entropy=` beside it"),
        (",datasource=other,entropy=1", "expected entro"),
    ] {
        let message = entropy(attributes).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

/// filebench before 1.5 drew the size of each file from a gamma law unless it was told not to.
#[test]
fn sizes_in_files_of_older_form_are_gamma_distributed() {
    let size = |text: &str| {
        let script = script(text);
        let fileset = script
            .commands
            .iter()
            .find_map(|command| match &command.kind {
                CommandKind::DefineFileset(fileset) => Some(fileset.clone()),
                _ => None,
            });
        variables(text).file_size(&fileset.unwrap()).unwrap()
    };
    let plain = "define fileset name=a,path=/tmp,entries=1,size=16k";
    assert_eq!(size(plain), Number::Fixed(16_384.0));
    let older = size(&format!("{plain} usage \"x\""));
    assert!(matches!(older, Number::Random(_)));
    assert!((older.mean() - 16_384.0).abs() < 1e-6);
    assert!(notes(&format!("{plain} usage \"x\""))[0].contains("gamma-distributed"));
    assert_eq!(
        size(&format!("{plain},filesizegamma=0")),
        Number::Fixed(16_384.0)
    );
    assert!(matches!(
        size(&format!("{plain},filesizegamma=3000")),
        Number::Random(_)
    ));
    assert_eq!(
        size("define file name=a,path=/tmp,size=16k usage \"x\""),
        Number::Fixed(16_384.0)
    );
    assert_eq!(
        size(&format!("{plain},size=0 usage \"x\"")),
        Number::Fixed(0.0)
    );
    let random = size(
        "set $s=randvar(type=uniform,mean=5k) define fileset name=a,path=/tmp,entries=1,size=$s usage \"x\"",
    );
    assert!((random.mean() - 5120.0).abs() < 1e-6);
}

#[test]
fn one_parameter_of_a_random_variable_may_be_set_and_read() {
    let text =
        "set $r=randvar(type=gamma,mean=10) set $r.mean=2k set $r.type=uniform set $m=$r.mean";
    assert_eq!(held(text, "m"), Held::Integer(2048));
    assert!(
        matches!(held(text, "r"), Held::Random(random) if random.law == Some(RandomLaw::Uniform))
    );
}

#[test]
fn what_means_nothing_is_passed_over_with_a_note_as_filebench_does() {
    let text = "set $a=1;\r\nset $b=2%\r\n";
    assert_eq!(held(text, "a"), Held::Integer(1));
    let notes = notes(text);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("`;`"));
    assert_eq!(script("\u{feff}set $a=1").notes.len(), 0);
    assert!(parse_bytes(b"# Latin-1: \xe9\nset $a=1", "x").is_ok());
}

#[test]
fn errors_say_where_what_was_found_and_what_was_expected() {
    for (text, expected) in [
        (
            "frobnicate",
            "test.f:1:1: found `frobnicate`, expected a command (create, debug, define,",
        ),
        ("set $a\n  5", "test.f:2:3: found `5`, expected `=`"),
        (
            "set a=5",
            "test.f:1:5: found `a`, expected a variable such as `$name`, or `mode`",
        ),
        (
            "define fileset name=a,size 5",
            "test.f:1:28: found `5`, expected `=` and a number or a variable after `size`",
        ),
        (
            "define fileset nam=a",
            "test.f:1:16: found `nam`, expected an attribute of a fileset (name, path,",
        ),
        (
            "define fileset name=a,entries=many",
            "test.f:1:31: found `many`, expected a number or a variable for `entries`",
        ),
        (
            "define process name=a\n{\n",
            "test.f:3:1: found the end of the file, expected `thread`",
        ),
        (
            "define process name=a { thread name=b { } }",
            "test.f:1:41: found `}`, expected `flowop`",
        ),
        (
            "define process name=a { thread name=b { flowop read name=c",
            "test.f:1:59: found the end of the file, expected `,` and an attribute, `flowop`, or `}`",
        ),
        (
            "define process name=a { thread name=b { flowop read name=c, blocksize=5",
            "test.f:1:61: found `blocksize`, expected an attribute of a flowop (name, filesetname, filename,",
        ),
        (
            "echo hello",
            "test.f:1:6: found `hello`, expected a text in quotes",
        ),
        (
            "echo \"hello\nrun 5",
            "test.f:1:6: found a quoted text without an end",
        ),
        (
            "set $a=99999999999999999999",
            "test.f:1:8: found `99999999999999999999`, expected a number below 2^64",
        ),
        (
            "set mode quit never",
            "test.f:1:15: found `never`, expected timeout, alldone or firstdone",
        ),
        (
            "set $r=randvar(type=normal)",
            "test.f:1:21: found `normal`, expected uniform, gamma or tabular",
        ),
        (
            "set $r=randvar(max=5)",
            "test.f:1:16: found `max`, expected an attribute of a random variable",
        ),
        (
            "set $r=randvar(randtable={{1,2}})",
            "test.f:1:31: found `}`, expected `,` and the row's greatest value",
        ),
        (
            "set $r=cvar(type=cvar-gamma",
            "test.f:1:28: found the end of the file, expected `,` and an attribute, or `)`",
        ),
        (
            "sleep soon",
            "test.f:1:7: found `soon`, expected a number of seconds or a variable",
        ),
        (
            "define randvar type=gamma",
            "test.f:1:1: the random variable has no name, expected `name=$name`",
        ),
        (
            "create things",
            "test.f:1:8: found `things`, expected files",
        ),
        ("run 60\n}", "test.f:2:1: found `}`, expected a command"),
        (
            "é\tset",
            "test.f:1:6: found the end of the file, expected a variable",
        ),
    ] {
        let message = refused(text);
        assert!(
            message.starts_with(expected),
            "{message}\nis not\n{expected}"
        );
        assert!(!message.contains('\n'));
    }
}

#[test]
fn foreach_may_not_be_nested_without_an_end() {
    assert!(refused(&"foreach $n in 1 { ".repeat(100_000)).contains("expected fewer"));
}

#[test]
fn every_type_of_flowop_and_every_attribute_is_found_by_its_name() {
    for &kind in FlowopType::ALL {
        assert_eq!(FlowopType::find(kind.name()), Some(kind));
        if kind.direction() != Direction::Neither {
            assert!(matches!(kind.class(), FlowopClass::Io | FlowopClass::Aio));
        }
    }
    for &key in FlowopAttribute::ALL {
        assert_eq!(FlowopAttribute::find(key.name()), Some(key));
    }
    assert_eq!(
        FilesetAttribute::find("filesize"),
        Some(FilesetAttribute::Size)
    );
}

/// What happens again and again, or is changed between, is done each time.
#[test]
fn an_older_file_that_changes_something_between_sleeps_works_in_rounds() {
    fn rounds(commands: &[dyno_wml::ast::Command]) -> Vec<(bool, bool)> {
        commands
            .iter()
            .flat_map(|command| match &command.kind {
                CommandKind::Round { warmup, seconds } => {
                    vec![(warmup.is_some(), seconds.is_some())]
                }
                CommandKind::Foreach { commands, .. } => rounds(commands),
                CommandKind::Sleep(_) => panic!("{commands:?} sleeps"),
                _ => Vec::new(),
            })
            .collect()
    }
    let of = |text: &str| rounds(&script(text).commands);
    let counted = (false, true);
    let each = "create processes stats clear sleep 5 stats snap shutdown processes";
    assert_eq!(of(&format!("foreach $n in 1, 2 {{ {each} }}")), [counted]);
    assert_eq!(of(&format!("{each} {each}")), [counted, counted]);
    assert_eq!(
        of("create processes sleep 3 stats clear sleep 5 eventgen rate=9 sleep 5"),
        [(true, true), counted]
    );
    assert_eq!(
        of("create processes foreach $n in 1, 2 { eventgen rate=$n sleep 5 }"),
        [counted]
    );
}
