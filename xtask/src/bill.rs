//! The list of the libraries in the packages' programs (`CycloneDX`), for `cargo xtask package`.

use crate::licences::Part;
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Joins the lists of programs, and adds libraries that are no crates. The first list's program remains the one that the list is of.
/// Fails if a list is not of the form that cargo-cyclonedx writes.
pub(crate) fn joined(lists: &[String], parts: &[Part]) -> Result<String> {
    let parse = |list: &String| serde_json::from_str::<Value>(list).context("cargo cyclonedx");
    let mut lists = lists.iter().map(parse);
    let mut all = lists.next().context("no list")??;
    for list in lists {
        merge(&mut all, list?)?;
    }
    for part in parts {
        add(&mut all, part)?;
    }
    Ok(format!("{all:#}\n"))
}

/// Adds what another list has: its program, its components, and what they depend on.
fn merge(list: &mut Value, mut other: Value) -> Result<()> {
    let program = other.pointer_mut("/metadata/component").context("cargo cyclonedx: no program")?.take();
    let added = std::mem::take(entries(&mut other, "components")?);
    let components = entries(list, "components")?;
    for component in added.into_iter().chain([program]) {
        match components.iter().position(|one| one["bom-ref"] == component["bom-ref"]) {
            // One program has a crate in it that only builds the other.
            Some(at) if component["scope"] == "required" => components[at] = component,
            Some(_) => {}
            None => components.push(component),
        }
    }
    let added = std::mem::take(entries(&mut other, "dependencies")?);
    let dependencies = entries(list, "dependencies")?;
    for dependency in added {
        if dependencies.iter().all(|one| one["ref"] != dependency["ref"]) {
            dependencies.push(dependency);
        }
    }
    Ok(())
}

/// Adds a library on which the list's program depends.
fn add(list: &mut Value, part: &Part) -> Result<()> {
    let program = list["metadata"]["component"]["bom-ref"].clone();
    entries(list, "components")?.push(json!({
        "type": "library",
        "bom-ref": part.purl,
        "name": part.name,
        "version": part.version,
        "scope": "required",
        "licenses": [{ "expression": part.licence }],
        "purl": part.purl,
    }));
    let dependencies = entries(list, "dependencies")?;
    dependencies.push(json!({ "ref": part.purl }));
    let of_program = dependencies.iter_mut().find(|one| one["ref"] == program);
    entries(of_program.context("the program has no dependencies")?, "dependsOn")?.push(json!(part.purl));
    Ok(())
}

fn entries<'a>(object: &'a mut Value, key: &str) -> Result<&'a mut Vec<Value>> {
    object.get_mut(key).and_then(Value::as_array_mut).with_context(|| format!("cargo cyclonedx: no `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list as cargo-cyclonedx writes it, of components and their scopes.
    fn list(program: &str, components: &[(&str, &str)]) -> String {
        let component = |name: &str, scope: &str| json!({ "bom-ref": name, "name": name, "scope": scope });
        let names: Vec<&str> = components.iter().map(|(name, _)| *name).collect();
        let mut dependencies = vec![json!({ "ref": program, "dependsOn": names })];
        dependencies.extend(names.iter().map(|name| json!({ "ref": name })));
        json!({
            "metadata": { "component": component(program, "required") },
            "components": components.iter().map(|(name, scope)| component(name, scope)).collect::<Vec<_>>(),
            "dependencies": dependencies,
        })
        .to_string()
    }

    fn part() -> Part {
        Part::for_tests("zlib", "1:1.2", "pkg:deb/debian/zlib1g-dev@1%3A1.2")
    }

    #[test]
    fn each_library_of_all_programs_is_listed_once_and_what_is_no_crate_as_well() {
        let lists = [
            list("ranway", &[("tokio", "required"), ("syn", "excluded")]),
            list("ranway-python", &[("pyo3", "required"), ("syn", "required"), ("tokio", "excluded")]),
        ];
        let all: Value = serde_json::from_str(&joined(&lists, &[part()]).expect("lists")).expect("JSON");
        let components = all["components"].as_array().expect("components");
        let shown: Vec<(&str, &str)> = components
            .iter()
            .map(|one| (one["name"].as_str().unwrap_or_default(), one["scope"].as_str().unwrap_or_default()))
            .collect();
        let names = ["tokio", "syn", "pyo3", "ranway-python", "zlib"];
        assert_eq!(shown, names.map(|name| (name, "required")));
        assert_eq!(all["metadata"]["component"]["name"], "ranway");
        assert_eq!(components[4]["version"], "1:1.2");
        let dependencies = all["dependencies"].as_array().expect("dependencies");
        let refs: Vec<&str> = dependencies.iter().filter_map(|one| one["ref"].as_str()).collect();
        assert_eq!(refs, ["ranway", "tokio", "syn", "ranway-python", "pyo3", "pkg:deb/debian/zlib1g-dev@1%3A1.2"]);
        assert_eq!(dependencies[0]["dependsOn"], json!(["tokio", "syn", "pkg:deb/debian/zlib1g-dev@1%3A1.2"]));
    }

    #[test]
    fn what_is_not_a_list_is_an_error() {
        let whole = list("ranway", &[("tokio", "required")]);
        for lists in
            [vec![], vec!["{".to_owned()], vec![whole.clone(), "{}".to_owned()], vec![whole.clone(), "[]".to_owned()]]
        {
            assert!(joined(&lists, &[part()]).is_err(), "{lists:?}");
        }
        let orphan = whole.replace("dependsOn", "other");
        assert!(format!("{:#}", joined(&[orphan], &[part()]).expect_err("no list")).contains("`dependsOn`"));
    }
}
