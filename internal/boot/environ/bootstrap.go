package environ

import (
	"fmt"
	"slices"
	"strings"
)

// RefusedError is a .env file that sets a variable which decides how the
// process starts. A project's file comes with the project, and so from
// strangers.
type RefusedError struct {
	Path string // of the .env file
	Name string // as it stands there
	// AllowedIn is the file that may set it, "" when none may.
	AllowedIn string
}

func (e *RefusedError) Error() string {
	const why = "it decides how this process starts, where its code and instructions load from, or how it reaches the network"
	if e.AllowedIn != "" {
		return fmt.Sprintf("%s sets %q, which only the launching environment or the .env file of the dsh home may set (%s); put %s in %s or export it",
			e.Path, e.Name, why, e.Name, e.AllowedIn)
	}
	return fmt.Sprintf("%s sets %q, which only the launching environment may set (%s); export %s instead of putting it in a .env file",
		e.Path, e.Name, why, e.Name)
}

// isBootstrap tells whether no .env file may set the variable. Case does not
// matter, since on Windows it does not matter for the system.
func isBootstrap(name string) bool {
	name = fold(name)
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.ContainsFunc(bootstrapPrefixes, hasPrefix) || slices.Contains(bootstrapNames, name)
}

// isProxy tells whether only the home's .env file may set the variable.
func isProxy(name string) bool { return slices.Contains(proxyNames, fold(name)) }

// fold makes names equal that differ in case alone; lower case first, since the
// Kelvin sign is an upper-case letter but not K.
func fold(name string) string { return strings.ToUpper(strings.ToLower(name)) }

var bootstrapPrefixes = []string{"DSH_", "XDG_", "DYLD_", "BASH_FUNC_"}

var proxyNames = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}

var bootstrapNames = []string{
	"PATH", "HOME", "USERPROFILE", "SHELL",
	"NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED",
	"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT",
	"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS",
	"PERL5OPT", "PERL5LIB", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "RUBYOPT", "RUBYLIB",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_ASKPASS", "SSH_ASKPASS",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT",
	"EDITOR", "VISUAL", "PAGER", "BROWSER",
	"DEEPSEEK_BASE_URL", "DEEPSEEK_SEARCH_BASE_URL",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
}
