package environ

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/fault"

	"github.com/google/go-cmp/cmp"
)

// The directories of the tests, with the separators of the system.
var (
	cwd         = filepath.FromSlash("/work/project")
	home        = filepath.FromSlash("/home/me/.dsh")
	projectFile = filepath.Join(cwd, ".env")
	homeFile    = filepath.Join(home, ".env")
)

// files reads from memory and records what was asked for.
type files struct {
	text  map[string]string
	fails map[string]error
	reads []string
}

func (f *files) read(path string) ([]byte, error) {
	f.reads = append(f.reads, path)
	if err := f.fails[path]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if text, ok := f.text[path]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

func TestLoadLayers(t *testing.T) {
	f := &files{text: map[string]string{
		projectFile: "\uFEFFA=project\nB=project\nEMPTY=project\n",
		homeFile:    "A=home\nB=home\nC=home\nHTTPS_PROXY=http://p\n",
	}}
	s, warnings, err := Load([]string{"A=process", "EMPTY=", "E=x=y", "A=twice", "nonsense", ""}, cwd, home, f.read)
	if err != nil || warnings != nil {
		t.Fatalf("%v, %v", warnings, err)
	}
	want := []Variable{
		{"A", "process", Process, ""},
		{"EMPTY", "", Process, ""},
		{"E", "x=y", Process, ""},
		{"B", "project", ProjectEnv, projectFile},
		{"C", "home", UserEnv, homeFile},
		{"HTTPS_PROXY", "http://p", UserEnv, homeFile},
	}
	if diff := cmp.Diff(want, s.variables); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if v, ok := s.Lookup("C"); !ok || v != want[4] || s.Getenv("C") != "home" {
		t.Errorf("Lookup(C) = %v, %v", v, ok)
	}
	if v, ok := s.Lookup("EMPTY"); !ok || v.Source != Process {
		t.Errorf("Lookup(EMPTY) = %v, %v", v, ok)
	}
	if v, ok := s.Lookup("MISSING"); ok || v != (Variable{}) || s.Getenv("MISSING") != "" {
		t.Errorf("Lookup(MISSING) = %v, %v", v, ok)
	}
	if diff := cmp.Diff([]string{projectFile, homeFile}, f.reads); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	if string(Process)+string(ProjectEnv)+string(UserEnv) != "processproject-envuser-env" {
		t.Error("the sources have other names")
	}
}

func TestSnapshotNeverChanges(t *testing.T) {
	process := []string{"A=1"}
	s, _, err := Load(process, cwd, home, (&files{}).read)
	if err != nil {
		t.Fatal(err)
	}
	process[0] = "A=2"
	if got := s.Getenv("A"); got != "1" {
		t.Errorf("A=%s", got)
	}
	var zero Snapshot
	if _, ok := zero.Lookup("A"); ok || zero.Getenv("A") != "" {
		t.Error("the zero snapshot is not empty")
	}
}

func TestLoadAtHomeReadsOnce(t *testing.T) {
	for _, dir := range []string{home, home + string(filepath.Separator), filepath.Join(home, "x") + string(filepath.Separator) + ".."} {
		f := &files{text: map[string]string{homeFile: "A=1\nHTTP_PROXY=p\n"}}
		s, _, err := Load(nil, dir, home, f.read)
		if err != nil {
			t.Fatal(err)
		}
		want := []Variable{{"A", "1", ProjectEnv, homeFile}, {"HTTP_PROXY", "p", ProjectEnv, homeFile}}
		if diff := cmp.Diff(want, s.variables); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", dir, diff)
		}
		if diff := cmp.Diff([]string{homeFile}, f.reads); diff != "" {
			t.Errorf("reads from %s (-want +got):\n%s", dir, diff)
		}
	}
}

func TestLoadUnreadable(t *testing.T) {
	f := &files{text: map[string]string{homeFile: "A=1\n"}, fails: map[string]error{projectFile: fs.ErrPermission}}
	s, warnings, err := Load(nil, cwd, home, f.read)
	if err != nil || s.Getenv("A") != "1" {
		t.Fatalf("A=%q, %v", s.Getenv("A"), err)
	}
	if len(warnings) != 1 || warnings[0].Path != projectFile || !errors.Is(warnings[0].Err, fs.ErrPermission) {
		t.Fatalf("warnings %v", warnings)
	}
	if got, want := warnings[0].String(), "failed to load .env: open "+projectFile+": permission denied"; got != want {
		t.Errorf("warning %q, want %q", got, want)
	}

	// What PowerShell writes by default; not an error, since a boot can do without.
	f = &files{text: map[string]string{homeFile: "\xff\xfeA\x00=\x001\x00", projectFile: "A=\xff\n"}}
	s, warnings, err = Load(nil, cwd, home, f.read)
	if err != nil || s.Getenv("A") != "\uFFFD" {
		t.Fatalf("A=%q, %v", s.Getenv("A"), err)
	}
	if len(warnings) != 1 || warnings[0].String() != "failed to load .env: "+homeFile+" holds zero bytes, which no variable can; save it as UTF-8 text" {
		t.Errorf("warnings %v", warnings)
	}
}

func TestLoadRefuses(t *testing.T) {
	const (
		tail  = `, which only the launching environment may set (it decides how this process starts, where its code and instructions load from, or how it reaches the network); export %[1]s instead of putting it in a .env file`
		proxy = `, which only the launching environment or the .env file of the dsh home may set (it decides how this process starts, where its code and instructions load from, or how it reaches the network); put %[1]s in %[2]s or export it`
	)
	message := func(file, format, name string) string {
		return fmt.Sprintf(`%s sets "%s"`, file, name) + strings.NewReplacer("%[1]s", name, "%[2]s", homeFile).Replace(format)
	}
	tests := []struct {
		name          string
		project, home string
		want          string
	}{
		{"project", "A=1\nPATH=/x\n", "", message(projectFile, tail, "PATH")},
		{"home", "A=1", "NODE_OPTIONS=x", message(homeFile, tail, "NODE_OPTIONS")},
		{"the project's file comes first", "SHELL=x", "PATH=y", message(projectFile, tail, "SHELL")},
		{"the first one in the file", "A=1\nHOME=x\nPATH=y", "", message(projectFile, tail, "HOME")},
		{"any case", "Path=x", "", message(projectFile, tail, "Path")},
		{"prefix in any case", "dsh_Home=x", "", message(projectFile, tail, "dsh_Home")},
		{"exported", "export LD_PRELOAD=x", "", message(projectFile, tail, "LD_PRELOAD")},
		{"behind a byte-order mark", "\uFEFFPATH=x", "", message(projectFile, tail, "PATH")},
		{"empty", "PATH=", "", message(projectFile, tail, "PATH")},
		{"long s", "\u017fHELL=x", "", message(projectFile, tail, "\u017fHELL")},
		{"proxy in the project", "http_proxy=p", "", message(projectFile, proxy, "http_proxy")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &files{text: map[string]string{projectFile: tt.project, homeFile: tt.home}}
			s, _, err := Load([]string{"PATH=/bin", "http_proxy=x"}, cwd, home, f.read)
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || refused.Error() != tt.want {
				t.Fatalf("error %v\nwant  %s", err, tt.want)
			}
			if fault.ClassOf(err) != fault.Other {
				t.Errorf("class %v", fault.ClassOf(err))
			}
			if len(s.variables) != 0 {
				t.Errorf("variables %v", s.variables)
			}
		})
	}
}

func TestBootstrapNames(t *testing.T) {
	const refused = `PATH HOME USERPROFILE SHELL NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT
		BASH_ENV ENV SHELLOPTS BASHOPTS PERL5OPT PERL5LIB PYTHONSTARTUP PYTHONPATH PYTHONHOME RUBYOPT RUBYLIB
		JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_ASKPASS SSH_ASKPASS
		GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_COUNT EDITOR VISUAL PAGER BROWSER DEEPSEEK_BASE_URL DEEPSEEK_SEARCH_BASE_URL
		SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_TLS_REJECT_UNAUTHORIZED
		DSH_ DSH_PROFILE XDG_CONFIG_HOME DYLD_INSERT_LIBRARIES BASH_FUNC_x%%`
	for _, name := range strings.Fields(refused) {
		for _, spelled := range []string{name, strings.ToLower(name)} {
			if !isBootstrap(spelled) {
				t.Errorf("%s is not refused", spelled)
			}
		}
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "no_proxy"} {
		if !isProxy(name) || isBootstrap(name) {
			t.Errorf("%s is not a proxy name alone", name)
		}
	}
	for _, name := range []string{"DSH", "XDG", "MY_PATH", "PATHS", "DEEPSEEK_API_KEY", "OPENAI_API_KEY", "GIT_AUTHOR_NAME", "FTP_PROXY", "NODE_ENV", "TZ"} {
		if isBootstrap(name) || isProxy(name) {
			t.Errorf("%s is refused", name)
		}
	}
}

func TestLoadOnWindows(t *testing.T) {
	f := &files{text: map[string]string{projectFile: "token=project\nNew=1\n", homeFile: "NEW=2\n"}}
	s, _, err := load([]string{`=C:=C:\dir`, "Token=process"}, cwd, home, f.read, true)
	if err != nil {
		t.Fatal(err)
	}
	want := []Variable{{"=C:", `C:\dir`, Process, ""}, {"Token", "process", Process, ""}, {"New", "1", ProjectEnv, projectFile}}
	if diff := cmp.Diff(want, s.variables); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Getenv("TOKEN") != "process" {
		t.Errorf("TOKEN=%q", s.Getenv("TOKEN"))
	}

	f = &files{text: map[string]string{strings.ToUpper(home) + string(filepath.Separator) + ".env": "HTTP_PROXY=p"}}
	s, _, err = load(nil, strings.ToUpper(home), home, f.read, true)
	if err != nil || len(f.reads) != 1 || s.Getenv("http_proxy") != "p" {
		t.Errorf("at home: %v, %q", err, f.reads)
	}

	unix, _, err := load([]string{"A=1", "a=2"}, cwd, home, (&files{}).read, false)
	if err != nil || len(unix.variables) != 2 {
		t.Errorf("elsewhere names that differ in case are two: %v, %v", unix.variables, err)
	}
}

func TestListIsForAChild(t *testing.T) {
	read := func(path string) ([]byte, error) {
		if filepath.Base(filepath.Dir(path)) == "cwd" {
			return []byte("A=weaker\nB=\"of the project\"\n"), nil
		}
		return nil, fs.ErrNotExist
	}
	s, _, err := Load([]string{"Z=1", "A=x=y", "=C:=C:\\"}, filepath.FromSlash("/cwd"), filepath.FromSlash("/home"), read)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.List(), "\n"); got != "Z=1\nA=x=y\n=C:=C:\\\nB=of the project" {
		t.Errorf("got %q", got)
	}
}
