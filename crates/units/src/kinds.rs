//! Enumerations written in a file as `"name"` or as `{ kind = "name", ... }`.

/// Declares an enumeration that is written in a file as `"name"` or as `{ kind = "name", ... }`. The first argument repeats its name
/// for serde's `remote`; a second one is its name in the JSON Schema, if that differs.
///
/// Serde's internally tagged form would read such a table, but only after copying it, which loses the position of each value. So the
/// enumeration is *written* (and described to JSON Schema) with the tag `kind`, and *read* as an externally tagged one: a deserializer of
/// scenario files takes the variant from `kind`, or from the string.
///
/// The caller needs the crates `serde` and `schemars`.
#[macro_export]
macro_rules! kinds {
    ($name:tt $(as $schema:tt)?, $(#[$meta:meta])* pub enum $enum:ident { $($body:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        $(#[schemars(rename = $schema)])?
        pub enum $enum { $($body)* }

        const _: () = {
            $(#[$meta])*
            #[allow(dead_code)]
            #[derive(Clone, PartialEq, serde::Deserialize)]
            #[serde(remote = $name, rename_all = "kebab-case", deny_unknown_fields)]
            enum Mirror { $($body)* }

            impl<'de> serde::Deserialize<'de> for $enum {
                fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<$enum, D::Error> {
                    Mirror::deserialize(d)
                }
            }
        };
    };
}
