package profileapi

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"dsh/internal/action"
	"dsh/internal/boot/host"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// skills lists what agents find, and what is wrong with what they do not find.
func (a *api) skills(r *http.Request) (any, error) {
	list, err := action.ListSkills(r.Context(), a.env(), a.profile.Layers)
	if err != nil {
		return nil, err
	}
	return merged(list, tell(list.Warnings))
}

func (a *api) skill(r *http.Request) (any, error) {
	name := r.PathValue("name")
	list, err := action.ListSkills(r.Context(), a.env(), a.profile.Layers)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list.Skills, func(s action.SkillFound) bool { return s.Name == name }) {
		return nil, notFound("the profile has no skill %q", name)
	}
	shown, err := action.ShowSkill(r.Context(), a.env(), a.profile.Layers, name)
	if err != nil {
		return nil, err
	}
	return merged(shown, tell(shown.Warnings))
}

// serverView is an MCP server: its row, and how it is now.
type serverView struct {
	Name      string     `json:"name"`
	Row       string     `json:"row"` // path of the host's row, "" where it is none
	Transport string     `json:"transport"`
	State     string     `json:"state"` // connected, connecting, down or stopped
	Error     string     `json:"error"`
	Tools     []toolView `json:"tools"`
	Log       []line     `json:"log"`
}

type toolView struct {
	Name        string `json:"name"` // the server's own
	PublicName  string `json:"publicName"`
	Title       string `json:"title"`
	Description string `json:"description"`
	InputSchema any    `json:"inputSchema"`
	Annotations any    `json:"annotations"`
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
	views := []serverView{}
	for _, s := range list.Servers {
		v := serverView{Name: s.Server, Transport: s.Transport, State: "stopped", Error: fault.Discreet(s.Problem), Tools: []toolView{}, Log: []line{}}
		if row, ok := status[paths[s.Path]]; ok {
			v.Row, v.State, v.Log = row.Path, serverState(row.State), a.log(row.Path)
			if row.Err != nil {
				v.Error = problemOf(row.Err).Message
			}
		}
		views = append(views, v)
	}
	return merged(map[string]any{"servers": views}, tell(list.Warnings))
}

// serverState is what the state of its row says of a server.
func serverState(s host.State) string {
	switch s {
	case host.Active:
		return "connected"
	case host.Starting, host.Waiting:
		return "connecting"
	case host.Failed:
		return "down"
	default:
		return "stopped"
	}
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
