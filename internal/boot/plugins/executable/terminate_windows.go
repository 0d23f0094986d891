package executable

import "os"

// terminate ends a process. Windows has no way to ask a single one.
func terminate(p *os.Process) { p.Kill() }
