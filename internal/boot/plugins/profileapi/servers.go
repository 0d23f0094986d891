package profileapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dsh/internal/action"
	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/tools"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// skills lists what agents find, and what is wrong with what they do not find.
func (a *api) skills(r *http.Request) (any, error) {
	list, err := action.ListSkills(r.Context(), a.env(), a.profile.Layers, nil)
	if err != nil {
		return nil, err
	}
	return merged(list, tell(list.Warnings))
}

func (a *api) skill(r *http.Request) (any, error) {
	name := r.PathValue("name")
	list, err := action.ListSkills(r.Context(), a.env(), a.profile.Layers, nil)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list.Skills, func(s action.SkillFound) bool { return s.Name == name }) {
		return nil, notFound("the profile has no skill %q", name)
	}
	shown, err := action.ShowSkill(r.Context(), a.env(), a.profile.Layers, name, nil)
	if err != nil {
		return nil, err
	}
	return merged(shown, tell(shown.Warnings))
}

// serverView is an MCP server: its row, and how it is now.
type serverView struct {
	Name      string             `json:"name"`
	Row       string             `json:"row"` // path of the host's row, "" where it is none
	Transport string             `json:"transport"`
	State     tools.State        `json:"state"`
	Error     string             `json:"error"`
	Since     *time.Time         `json:"since"` // of the state
	Tools     []tools.ServerTool `json:"tools"`
	Log       []line             `json:"log"`
}

// line is a line of a log.
type line struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

func (a *api) log(path string) []line {
	lines := []line{}
	for _, l := range a.rows.Log(path) {
		lines = append(lines, line{l.Time.UTC(), shorten(fault.Discreet(l.Text))})
	}
	return lines
}

func (a *api) servers(r *http.Request) (any, error) {
	list, err := action.ListMCP(r.Context(), a.env(), a.profile.Layers)
	if err != nil {
		return nil, err
	}
	tree, err := action.ExplainRows(r.Context(), a.env(), a.profile.Layers)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	hostPaths(tree.Rows, "", paths)
	status := map[string]host.Status{}
	for _, row := range a.rows.Rows() {
		status[row.Path] = row
	}
	views := make([]serverView, len(list.Servers))
	for i, s := range list.Servers {
		v := &views[i]
		*v = serverView{Name: s.Server, Transport: s.Transport, State: tools.Stopped, Error: fault.Discreet(s.Problem), Tools: []tools.ServerTool{}, Log: []line{}}
		row, ok := status[paths[s.Path]]
		if !ok {
			continue
		}
		v.Row, v.State, v.Log = row.Path, rowState(row.State), a.log(row.Path)
		if row.Err != nil {
			v.Error = problemOf(row.Err).Message
		}
		a.connection(v)
	}
	return merged(map[string]any{"servers": views}, tell(list.Warnings))
}

// connection tells how the server of a row is, while the row runs.
func (a *api) connection(v *serverView) {
	if a.tools == nil {
		return
	}
	for _, server := range a.tools.Servers() {
		s := server.Status()
		if s.Row != v.Row {
			continue
		}
		since := s.Since.UTC()
		// The name and the transport may have been expressions.
		v.Name, v.Transport, v.State, v.Error, v.Since = s.Name, s.Transport, s.State, fault.Discreet(s.Error), &since
		v.Tools = append(v.Tools, s.Tools...)
		if len(s.Log) > 0 {
			v.Log = []line{}
			for _, l := range s.Log {
				v.Log = append(v.Log, line{l.Time.UTC(), shorten(fault.Discreet(l.Text))})
			}
		}
	}
}

// rowState is what the state of its row says of a server that is not in the
// registry.
func rowState(s host.State) tools.State {
	switch s {
	case host.Failed:
		return tools.Down
	case host.Active, host.Starting, host.Waiting:
		return tools.Connecting
	default:
		return tools.Stopped
	}
}

// callBody asks for a call of a tool by the server's own name of it.
type callBody struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // an object, or nothing
}

// maxCalls is how many calls of tools run at once.
const maxCalls = 16

func (a *api) call(r *http.Request, body callBody) (any, error) {
	if body.Tool == "" {
		return nil, malformed("tool has to name a tool")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body.Arguments, &object); err != nil && len(body.Arguments) > 0 {
		return nil, malformed("arguments has to be an object")
	}
	name := r.PathValue("name")
	var server tools.Server
	ok := false
	if a.tools != nil {
		server, ok = a.tools.Server(name)
	}
	if !ok {
		return nil, notFound("no MCP server %q runs", name)
	}
	if a.calls.Add(1) > maxCalls {
		a.calls.Add(-1)
		return nil, &failure{code: http.StatusServiceUnavailable, class: busyClass, message: fmt.Sprintf("%d calls of tools run already", maxCalls)}
	}
	defer a.calls.Add(-1)
	began := time.Now()
	result, err := server.Call(r.Context(), body.Tool, body.Arguments)
	if err != nil {
		return nil, err
	}
	if result.Content == nil {
		result.Content = []json.RawMessage{}
	}
	return merged(result, map[string]int64{"ms": time.Since(began).Milliseconds()})
}

// hostPath is the path by which the host knows the row that is the nth of its
// list, below a group whose path, with a slash, is above.
func hostPath(id compose.Value, n int, above string) string {
	if compose.Truthy(id) {
		return above + compose.IDText(id)
	}
	return above + "#" + strconv.Itoa(n+1)
}

// hostPaths finds the paths of the host for the places of rows in the tree.
func hostPaths(rows []action.RowSummary, above string, found map[string]string) {
	for i, row := range rows {
		path := hostPath(row.ID.V, i, above)
		found[row.Path] = path
		hostPaths(row.Children, path+"/", found)
	}
}
