"""Batch texts and what cmd.exe prints for each: run on the box's interpreter and on Wine's cmd.exe.

`wine` holds what Wine 8 prints when that is not what Microsoft's cmd.exe prints (documented in `set /?`, `for
/?`, `call /?`, `if /?` and docs/facts/windows.md#batch-files); None: the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """Attributes: name, text (lines of the .bat), output (expected lines of stdout), files (besides it)."""

    name: str
    text: str
    output: str
    files: dict[str, str] = field(default_factory=dict)
    wine: str | None = None
    why: str = ""


CASES = [
    Case("percent in a batch file is doubled", "echo 100%% sure", "100% sure"),
    Case("an unknown variable is nothing", "echo [%NOPE%]", "[]"),
    Case("a lone percent sign vanishes", "echo 50% off", "50 off"),
    Case("set and read", 'set "X=a b"\necho [%X%]', "[a b]"),
    Case("names are case-blind", "set Foo=1\necho %FOO% %foo%", "1 1"),
    Case("set without quotes keeps the trailing blank", "set X=v \necho [%X%]", "[v ]"),
    Case("set X with quotes stores the quotes", 'set X="v"\necho [%X%]', '["v"]'),
    Case("text after the closing quote is dropped", 'set "X=v" junk\necho [%X%]', "[v]"),
    Case("an empty value removes", "set X=1\nset X=\nif defined X (echo yes) else echo no", "no"),
    Case("substring", "set X=abcdef\necho %X:~1,3% %X:~-2% %X:~0,-2% %X:~4%", "bcd ef abcd ef"),
    Case("replacement ignores case", "set X=aXbxc\necho %X:x=-%", "a-b-c"),
    Case("replacement from the front", "set X=one=two\necho %X:*e=1%", "1=two"),
    Case("caret escapes", "echo a ^& b ^| c ^> d ^^ e", "a & b | c > d ^ e"),
    Case("caret is literal in quotes", 'echo "a ^ & b"', '"a ^ & b"'),
    Case("continuation", "echo one ^\ntwo ^\nthree", "one two three"),
    Case("special characters inside quotes", 'set "X=a&b|c<d>e"\necho "%X%"', '"a&b|c<d>e"'),
    Case("parentheses and exclamation marks are plain", "echo (a) !b! %%c", "(a) !b! %c"),
    Case(
        "echo dot colon and paren",
        "echo.\necho.x\necho(y\necho:z",
        "\nx\ny\nz",
        wine="\nx\n(y\nz",
        why="echo( is not known",
    ),
    Case("echo keeps blanks", "echo  a  b ", " a  b "),
    Case("echo state", "echo", "ECHO is off.", wine="Echo is OFF", why="spelling"),
    Case("ampersand", "echo a& echo b&echo c", "a\nb\nc"),
    Case(
        "and or",
        "ver >nul && echo ok || echo bad\nnope 2>nul && echo ok || echo bad",
        "ok \nbad",
        wine="ok \nbad\nok \nbad",
        why="|| after && is taken whatever happened",
    ),
    Case("if equals", 'if "a"=="a" echo 1\nif "a"=="A" echo 2\nif /i "a"=="A" echo 3', "1\n3"),
    Case("if not", 'if not "a"=="b" echo yes', "yes"),
    Case("if else", 'if "a"=="b" (echo 1) else (echo 2)', "2"),
    Case("if else on lines", 'if "a"=="b" (\n  echo 1\n) else (\n  echo 2\n  echo 3\n)', "2\n3"),
    Case(
        "if else if", 'set X=2\nif "%X%"=="1" (echo one) else if "%X%"=="2" (echo two) else echo many', "two"
    ),
    Case(
        "numbers compare as numbers", "if 10 GTR 9 echo 1\nif 07 EQU 7 echo 2\nif -1 LSS 0 echo 3", "1\n2\n3"
    ),
    Case("text compares as text", "if abc LSS abd echo 1\nif /i ABC EQU abc echo 2", "1\n2"),
    Case("all comparisons", "if 1 LEQ 1 echo a\nif 2 GEQ 3 echo b\nif 1 NEQ 2 echo c", "a\nc"),
    Case(
        "if exist",
        "if exist here.txt echo 1\nif exist gone.txt echo 2\nif exist *.txt echo 3",
        "1\n3",
        {"here.txt": "x"},
    ),
    Case("if exist folder", "mkdir d\nif exist d echo 1\nif exist d\\ echo 2", "1\n2"),
    Case("if defined", "if defined PATH echo 1\nif not defined NOPE echo 2", "1\n2"),
    Case("errorlevel of a missing program", "nope 2>nul\necho %ERRORLEVEL%", "9009"),
    Case("if errorlevel is at least", "cmd /c exit 5\nif errorlevel 5 echo 1\nif errorlevel 6 echo 2", "1"),
    Case(
        "if errorlevel misses negative codes",
        "cmd /c exit -1\nif errorlevel 1 echo 1\nif %ERRORLEVEL% NEQ 0 echo 2 %ERRORLEVEL%",
        "2 -1",
    ),
    Case("crash codes are negative", "cmd /c exit -1073741819\necho %ERRORLEVEL%", "-1073741819"),
    Case("capture the code at once", 'cmd /c exit 3\nset "RC=%ERRORLEVEL%"\necho %RC%', "3"),
    Case(
        "variables in a block expand when it is parsed",
        "set X=1\nif 1==1 (\n  set X=2\n  echo %X%\n)\necho %X%",
        "1\n2",
    ),
    Case(
        "delayed expansion",
        "setlocal EnableDelayedExpansion\nset X=1\nif 1==1 (\n  set X=2\n  echo !X!\n)",
        "2",
    ),
    Case(
        "goto forward and back",
        "set N=0\n:top\nset /a N+=1\nif %N% LSS 3 goto top\ngoto end\necho never\n:end\necho %N%",
        "3",
    ),
    Case("goto out of a block", "if 1==1 (\n  goto out\n  echo never\n)\n:out\necho out", "out"),
    Case("goto :eof", "echo 1\ngoto :eof\necho 2", "1"),
    Case("labels are found whatever their case", "goto Label\necho no\n:LABEL\necho yes", "yes"),
    Case(
        "call a label",
        'call :sub a "b c"\necho back\ngoto :eof\n:sub\necho %0 %1 %2 %~2\nexit /b 0',
        ':sub a "b c" b c\nback',
    ),
    Case("code of a subroutine", "call :sub\necho %ERRORLEVEL%\ngoto :eof\n:sub\nexit /b 7", "7"),
    Case(
        "call a batch file",
        "call other.bat x\necho back %ERRORLEVEL%",
        "in other x\nback 4",
        {"other.bat": "@echo in other %1\r\n@exit /b 4\r\n"},
        wine="in other x\nback 1",
        why="the code of a called file is lost",
    ),
    Case(
        "without call control does not return",
        "other.bat\necho never",
        "in other",
        {"other.bat": "@echo in other\r\n"},
    ),
    Case("call expands twice", "set A=B\nset B=deep\ncall echo %%%A%%%", "deep"),
    Case(
        "setlocal ends with the batch file",
        "set X=1\ncall other.bat\necho %X%",
        "2\n1",
        {"other.bat": "@setlocal\r\n@set X=2\r\n@echo %X%\r\n"},
    ),
    Case("endlocal", "set X=1\nsetlocal\nset X=2\nendlocal\necho %X%", "1"),
    Case(
        "set /a",
        'set /a X=2+3*4\nset /a "Y=(2+3)*4, Z=17 %% 5"\nset /a W=-7/2\necho %X% %Y% %Z% %W%',
        "14 20 2 -3",
    ),
    Case("set /a assignments", "set /a X=5\nset /a X*=3\nset /a X-=1\necho %X%", "14"),
    Case("set /a bits", 'set /a "X=0xFF & 0x0F, Y=1<<4, Z=5|2, V=~0"\necho %X% %Y% %Z% %V%', "15 16 7 -1"),
    Case("set /a with names", "set N=4\nset /a M=N*2\necho %M%", "8"),
    Case(
        "set /p from a file",
        "set /p X=<one.txt\necho [%X%]",
        "[first]",
        {"one.txt": "first\r\nsecond\r\n"},
        wine="[first\nsecond]",
        why="reads on past the line",
    ),
    Case(
        "set /p from a file without a line end",
        "set /p X=<one.txt\necho [%X%]",
        "[first]",
        {"one.txt": "first"},
        wine="[firs]",
        why="takes the last character for a line end",
    ),
    Case(
        "set /p at the end of the file keeps the value",
        "set X=old\nset /p X=<one.txt\necho [%X%]",
        "[old]",
        {"one.txt": ""},
    ),
    Case("redirection at the front", '>"out file.txt" echo hello\ntype "out file.txt"', "hello"),
    Case("append", ">o.txt echo 1\n>>o.txt echo 2\ntype o.txt", "1\n2"),
    Case("stderr to stdout", "nope >o.txt 2>&1\nif exist o.txt echo there", "there"),
    Case(
        "echo before a redirection writes its blank", "echo hi >o.txt\nset /p X=<o.txt\necho [%X%]", "[hi ]"
    ),
    Case("redirect a block", "(\necho 1\necho 2\n) >o.txt\ntype o.txt", "1\n2"),
    Case("nul", "echo hidden >nul\necho shown", "shown"),
    Case("for over words", "for %%i in (a b,c;d) do echo %%i", "a\nb\nc\nd"),
    Case("for /l", "for /l %%i in (1,2,7) do echo %%i", "1\n3\n5\n7"),
    Case("for /f string", 'for /f "tokens=1,2 delims=:., " %%a in (" 9:05:03.17") do echo %%a-%%b', "9-05"),
    Case(
        "for /f file",
        'for /f "usebackq tokens=2 delims=," %%a in ("d.csv") do echo %%a',
        "2\n5",
        {"d.csv": "1,2,3\r\n4,5,6\r\n"},
    ),
    Case("for /f rest of line", 'for /f "tokens=1*" %%a in ("one two three") do echo %%b', "two three"),
    Case(
        "for /f skip and eol",
        'for /f "skip=1" %%a in (d.txt) do echo %%a',
        "b",
        {"d.txt": "a\r\n;comment\r\nb\r\n"},
        wine=";comment\nb",
        why="no default end-of-line mark",
    ),
    Case("for /f command", "for /f %%a in ('echo 42') do echo got %%a", "got 42"),
    Case(
        "for /f takes what is in the file as text",
        'for /f "usebackq" %%a in ("d.txt") do if "%%a"=="7" (echo same) else echo other',
        "other",
        {"d.txt": '7"&echo x\r\n'},
        wine="",
        why="a condition reads its words again after they are filled in",
    ),
    Case(
        "the body of for goes to the end of the line",
        "for %%i in (1 2) do echo %%i& echo -",
        "1\n-\n2\n-",
        wine="1\n2\n-",
        why="it ends at the first &",
    ),
    Case(
        "set /a parentheses after an operator",
        'set /a "X=60*(108 %% 100)+5"\necho [%X%]',
        "[485]",
        wine="[]",
        why="no %% in parentheses after an operator",
    ),
    Case(
        "time has 24 hours",
        'for /f "tokens=4 delims=:., " %%a in ("%TIME%") do echo hundredths',
        "hundredths",
        wine="",
        why="hours and minutes, in the form of the region: 5:37 PM",
    ),
    Case(
        "time is a variable like another when it is set",
        "set TIME=12:00\necho %TIME%",
        "12:00",
    ),
    Case(
        "size and name of a file",
        'for %%i in ("d.txt" "none") do if exist %%i if %%~zi GTR 3 echo %%~zi "%%~ni-old%%~xi"',
        '4 "d-old.txt"',
        {"d.txt": "1234"},
    ),
    Case(
        "for in for",
        'for %%i in (2) do for %%j in (1 2 3) do if "%%i"=="%%j" echo is %%j',
        "is 2",
    ),
    Case(
        "for /f begins one before a hundred",
        'for /f "tokens=1,2 delims=:" %%a in ("08:09") do '
        'set /a "M=60*(100%%a %% 100)+100%%b %% 100"\necho %M%',
        "489",
        wine="Echo is OFF",
        why="no %% in parentheses after an operator",
    ),
    Case("for modifiers", 'for %%i in ("x y.txt") do echo %%~i %%~ni %%~xi', "x y.txt x y .txt"),
    Case(
        "parameter modifiers",
        'call :s "C:\\dir name\\file.ext"\ngoto :eof\n:s\necho %~1\necho %~n1%~x1\necho %~d1%~p1',
        "C:\\dir name\\file.ext\nfile.ext\nC:\\dir name\\",
    ),
    Case("%~dp0 ends in a backslash", "set D=%~dp0\necho %D:~-1%", "\\"),
    Case("%*", 'call :s a  b "c d"\ngoto :eof\n:s\necho %*', 'a  b "c d"'),
    Case("commas separate arguments", "call :s a,b;c=d\ngoto :eof\n:s\necho %1 %2 %3 %4", "a b c d"),
    Case("shift", "call :s a b c\ngoto :eof\n:s\nshift\necho %1 %2", "b c"),
    Case("rem", "rem a & echo no\nrem ^\necho yes", "yes"),
    Case("labels as comments", ":: nothing\necho yes", "yes"),
    Case("cd", "mkdir sub\ncd sub\nif exist ..\\sub echo in\ncd ..\nif exist sub echo out", "in\nout"),
    Case("cd to nowhere", "cd nowhere 2>nul\necho %ERRORLEVEL%", "1"),
    Case("mkdir makes the parents", "mkdir a\\b\\c\nif exist a\\b\\c echo yes", "yes"),
    Case("del", "del x.txt\nif exist x.txt (echo there) else echo gone", "gone", {"x.txt": "1"}),
    Case("del of a missing file is no error", "del nope.txt 2>nul\necho %ERRORLEVEL%", "0"),
    Case(
        "move replaces",
        "move /y a.txt b.txt >nul\ntype b.txt\nif not exist a.txt echo gone",
        "new\ngone",
        {"a.txt": "new\r\n", "b.txt": "old\r\n"},
    ),
    Case("copy", "copy /y a.txt c.txt >nul\ntype c.txt", "text", {"a.txt": "text\r\n"}),
    Case("ren", "ren a.txt z.txt\nif exist z.txt echo yes", "yes", {"a.txt": "1"}),
    Case("rd /s", "mkdir d\\e\nrd /s /q d\nif not exist d echo gone", "gone"),
    Case("exit /b ends the batch file", "echo 1\nexit /b 3\necho 2", "1"),
    Case("exit code of a child", "cmd /c other.bat\necho %ERRORLEVEL%", "9", {"other.bat": "@exit /b 9\r\n"}),
    Case("quotes of cmd /c", 'cmd /d /s /c ""a b.bat" "x y""', 'got "x y"', {"a b.bat": "@echo got %*\r\n"}),
    Case("blank lines and leading blanks", "\n   echo a\n\n\techo b", "a\nb"),
    Case(
        "a variable with parentheses breaks no goto form",
        'set "P=C:\\Program Files (x86)\\x"\nif not defined P goto :eof\necho %P%',
        "C:\\Program Files (x86)\\x",
    ),
    Case("pipe", "echo one| more_or_less 2>nul\necho after", "after"),
    Case(
        "time has a colon",
        'for /f "tokens=1,2 delims=:., " %%a in ("%TIME%") do if not "%%b"=="" echo ok',
        "ok",
    ),
]
