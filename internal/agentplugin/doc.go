// Package agentplugin reads packages of the Agent Plugins format: a plugin.json,
// skills, and the configuration of MCP servers. [Load] asks a [Source], which is a
// directory or memory, and gives the plugin and every [Diagnostic]; nothing is left
// out without one. How a server is started is a value, [Stdio.Plan].
//
// It starts nothing, installs nothing, and asks no network. Section numbers are
// those of version 1.0.0 of the specification.
//
// # Where the specification is open
//
// What the loader does, and what [Options] change of it:
//
//   - A member of "extensions" that is no object makes the manifest invalid, as 8.1
//     and the schema have it. LenientExtensions reports and ignores it, because 8.1
//     also says that contents of unknown namespaces are not validated.
//   - A SKILL.md with fields that Agent Skills does not list is loaded, with a
//     warning. StrictSkills skips it.
//   - Of members of one name in a JSON object the last counts, as for JSON.parse,
//     with a warning. StrictMembers makes them an error of what they stand in.
//     Headers of one name, in whatever case, always make a server invalid.
//   - Version 1.1.0 is a draft, and refused as every unknown version. Draft takes it.
//   - A byte order mark before JSON or frontmatter is passed over, with a warning.
//     What is no UTF-8, also as half of an escaped surrogate pair, is invalid.
//   - A bare command may hold spaces, which are part of its name. A warning says so.
//   - A path with a backslash, or with a component that names a drive of Windows, is
//     invalid on every system.
//   - A command or working directory that is not there does not make a server
//     invalid, for it may be made before the start; a warning says so. A
//     command that is a directory and a working directory that is none do.
//   - Environment names that are reserved names in another case are taken, with a
//     warning; PLUGIN_ROOT and PLUGIN_DATA are set last in any case.
//   - Names of skills may have letters beyond a-z, as in the reference validator,
//     with a warning. Scalars of frontmatter count as they are written, so that
//     version: 1.0 is a string; anchors and aliases are refused.
package agentplugin
