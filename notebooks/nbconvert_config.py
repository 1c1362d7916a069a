# What differs from run to run, or from machine to machine, is no part of a notebook.
c.ExecutePreprocessor.timeout = 900
c.ExecutePreprocessor.record_timing = False
c.ClearMetadataPreprocessor.enabled = True
c.ClearMetadataPreprocessor.clear_cell_metadata = True
c.ClearMetadataPreprocessor.preserve_nb_metadata_mask = {"kernelspec", ("language_info", "name")}
