//! Parts of plans as bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::{Result, internal_err, not_impl_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use crate::leaf::{LeafExec, Part};
use crate::scan::scan_part;
use crate::source::{Damage, EventTable, Source, external};

/// Tables of recordings that are open, as parts of plans need them.
#[derive(Debug)]
pub(super) struct Tables {
    source: Arc<Source>,
    known: Mutex<HashMap<Option<String>, Arc<EventTable>>>,
}

impl Tables {
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            known: Mutex::default(),
        }
    }

    fn table(&self, class: Option<String>) -> Result<Arc<EventTable>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = known.get(&class) {
            return Ok(Arc::clone(table));
        }
        let name = class.as_deref().map(Arc::from);
        let table = Arc::new(EventTable::new(&self.source, name)?);
        known.insert(class, Arc::clone(&table));
        Ok(table)
    }
}

/// Writes leaves of kymo's own, and reads them if there are tables.
#[derive(Debug, Default)]
pub(super) struct Codec {
    /// Where leaves read from, and where damage goes.
    pub(super) tables: Option<(Arc<Tables>, Arc<Damage>)>,
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        _: &[Arc<dyn ExecutionPlan>],
        _: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some((tables, damage)) = &self.tables else {
            return internal_err!("no tables to read from");
        };
        let part: Part = serde_json::from_slice(bytes).map_err(external)?;
        let table = tables.table(part.class.clone())?;
        Ok(Arc::new(scan_part(part, table, damage)?))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let part = node.downcast_ref::<LeafExec>().and_then(LeafExec::part);
        let Some(part) = part else {
            return not_impl_err!("{} cannot be sent to a worker", node.name());
        };
        serde_json::to_writer(bytes, &part).map_err(external)
    }
}
